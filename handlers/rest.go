package handlers

import (
	"cmp"
	"context"
	"encoding/base64"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
)

const (
	apiPrefix   = "/api/v1"
	apiDocument = apiPrefix + "/openapi.json"
)

// rest has the operations of the REST API, named by their IDs. Each calls the same
// service method, with the same input, as its page.
type rest struct{ *App }

// section is where operations of one tag are registered.
type section struct {
	api huma.API
	tag string
}

// route is the method, path, success status, ID and summary of an operation.
type route struct {
	method, path string
	status       int
	id           string
	summary      models.Text
}

// summaryKey is the key of an operation's metadata for its summary as a Text.
const summaryKey = "summary"

type (
	requestKey    struct{}
	connectionKey struct{}
)

// httpRequestOf is the HTTP request that an operation answers.
func httpRequestOf(ctx context.Context) *http.Request {
	r, _ := ctx.Value(requestKey{}).(*http.Request)
	return r
}

// Inputs of operations.

// ByID names one resource.
type ByID struct {
	ID int64 `path:"id" minimum:"1" doc:"ID of the resource"`
}

// Paging selects one page of a list.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"600" doc:"next_cursor of the previous page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"maximum number of items"`
}

func (p Paging) page() (store.Page, error) {
	page, valid := parseCursor(p.Cursor)
	if !valid {
		return page, refuse("query.cursor", "is not a valid cursor for this list")
	}
	page.Limit = p.Limit
	return page, nil
}

// cursor is the place of a page in an address: its id, and its key if it has one.
func cursor(p store.Page) string {
	id := strconv.FormatInt(p.After, 10)
	if p.Key == "" {
		return id
	}
	return id + "." + base64.RawURLEncoding.EncodeToString([]byte(p.Key))
}

// parseCursor is the page of a cursor; the first one without.
func parseCursor(text string) (p store.Page, valid bool) {
	if text == "" {
		return p, true
	}
	id, encoded, _ := strings.Cut(text, ".")
	after, err := strconv.ParseInt(id, 10, 64)
	key, err2 := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || err2 != nil || after < 1 {
		return p, false
	}
	return store.Page{After: after, Key: string(key)}, true
}

// byID is the page that follows an item of a list by ids.
func byID[T any](id func(T) int64) func(T) store.Page {
	return func(item T) store.Page { return store.Page{After: id(item)} }
}

// PageOf selects a page of a resource's list.
type PageOf struct {
	ByID
	Paging
}

// Create carries a new resource.
type Create[B any] struct{ Body B }

// CreateIn adds something to one resource.
type CreateIn[B any] struct {
	ByID
	Body B
}

// Update replaces a resource.
type Update[B any] struct {
	Versioned
	Body B
}

// UpdateSingleton replaces the only resource of its kind.
type UpdateSingleton[B any] struct {
	IfMatch
	Body B
}

// IfMatch makes an update conditional.
type IfMatch struct {
	Match   string `header:"If-Match" doc:"ETag of the resource; a mismatch is rejected with 412"`
	version int64  // that Match names; 0: any; -1: an ETag of another server
}

// Versioned names one resource and, with If-Match, its version.
type Versioned struct {
	ByID
	IfMatch
}

func conditional(input reflect.Type) bool {
	_, ok := input.FieldByName("IfMatch")
	return ok
}

// Resolve parses the header before the operation runs.
func (m *IfMatch) Resolve(huma.Context) []error {
	tag := strings.TrimPrefix(strings.TrimSpace(m.Match), "W/")
	if tag == "" || tag == "*" {
		return nil
	}
	if len(tag) < 2 || tag[0] != '"' || strings.IndexByte(tag[1:], '"') != len(tag)-2 {
		return []error{&huma.ErrorDetail{Location: "header.If-Match", Message: `must be * or one ETag such as "3"`}}
	}
	var err error
	version, _, _ := strings.Cut(tag[1:len(tag)-1], "-") // a representation's hash may follow
	if m.version, err = strconv.ParseInt(version, 10, 64); err != nil || m.version < 1 {
		m.version = -1
	}
	return nil
}

func etag(version int64) string { return strconv.Quote(strconv.FormatInt(version, 10)) }

// Outputs of operations.

// Response is a body without a version.
type Response[B any] struct{ Body B }

// Found is a resource that carries its version.
type Found[B any] struct {
	ETag string `header:"ETag" doc:"resource version, for If-Match"`
	Body B
}

func found[B any](version int64, body B, err error) (*Found[B], error) {
	return &Found[B]{etag(version), body}, err
}

// Created is a new resource.
type Created[B any] struct {
	ETag     string `header:"ETag" doc:"resource version, for If-Match"`
	Location string `header:"Location" doc:"path of the new resource"`
	Body     B
}

func created[B any](version int64, body B, err error, location ...any) (*Created[B], error) {
	if err != nil {
		return nil, err
	}
	c := &Created[B]{Location: apiPrefix + path(location...), Body: body}
	if version > 0 {
		c.ETag = etag(version)
	}
	return c, nil
}

// Nothing is an answer without a body.
type Nothing struct{}

// List is one page.
type List[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent on the last page"`
}

// listed responds with one page. A full page is the last if the next one is empty.
func listed[T, R any](p Paging, id func(T) int64, fetch func(store.Page) ([]T, error), show func(T) R) (*Response[List[R]], error) {
	return listedAfter(p, byID(id), fetch, show)
}

// listedAfter is listed for a list with a sort key; next is the page that follows an item.
func listedAfter[T, R any](p Paging, next func(T) store.Page, fetch func(store.Page) ([]T, error), show func(T) R) (
	*Response[List[R]], error) {
	page, err := p.page()
	if err != nil {
		return nil, err
	}
	rows, err := fetch(page)
	if err != nil {
		return nil, err
	}
	list := List[R]{Items: models.Map(rows, show)}
	if n := len(rows); n > 0 && n == page.Limit {
		following := next(rows[n-1])
		following.Limit = 1
		more, err := fetch(following)
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			list.NextCursor = cursor(following)
		}
	}
	return &Response[List[R]]{list}, nil
}

// after returns the part of a list that follows the item with an id. If that is not there any more, its
// place is known in a list by ascending or descending ids.
func after[T any](all []T, id func(T) int64, last int64) ([]T, error) {
	if i := slices.IndexFunc(all, func(row T) bool { return id(row) == last }); i >= 0 || last == 0 {
		return all[i+1:], nil
	}
	for _, order := range []int64{1, -1} {
		compare := func(a, b T) int { return cmp.Compare(order*id(a), order*id(b)) }
		if slices.IsSortedFunc(all, compare) {
			i, _ := slices.BinarySearchFunc(all, last, func(row T, last int64) int { return cmp.Compare(order*id(row), order*last) })
			return all[i:], nil
		}
	}
	return nil, models.Invalid("cursor", "is not a valid cursor for this list")
}

// listedAll pages a complete list.
func listedAll[T, R any](p Paging, id func(T) int64, all []T, err error, show func(T) R) (*Response[List[R]], error) {
	if err != nil {
		return nil, err
	}
	return listed(p, id, func(page store.Page) ([]T, error) {
		rest, err := after(all, id, page.After)
		return rest[:min(page.Limit, len(rest))], err
	}, show)
}
