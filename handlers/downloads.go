package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"weir/handlers/sheet"
	"weir/models/store"
)

// download responds with a CSV file that fill writes to the connection. If fill fails,
// the connection is aborted, so that a partial file is not taken for a complete one.
func (a rest) download(name string, fill func(huma.Context, sheet.Writer) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "text/csv; charset=utf-8")
		hc.SetHeader("Content-Disposition", `attachment; filename="`+name+`"`)
		w := sheet.NewWriter(hc.BodyWriter())
		err := fill(hc, w)
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			a.Logger.WarnContext(hc.Context(), "a table was cut off", "name", name, "err", err)
			panic(http.ErrAbortHandler)
		}
	}}
}

// downloaded responds with a list as a CSV file. It reads one page at a time with the
// actor's current permissions, the first before the response begins, so that a refusal
// gets its status. Rows without cells are left out.
func downloaded[T any](a rest, ctx context.Context, name string, columns []string, cells func(T) []string, next func(T) store.Page,
	fetch func(context.Context, store.Page) ([]T, error)) (*huma.StreamResponse, error) {
	page := store.Page{Limit: store.PageSize}
	rows, err := fetch(ctx, page)
	if err != nil {
		return nil, err
	}
	return a.download(name, func(hc huma.Context, w sheet.Writer) error {
		if err := w.Row(columns...); err != nil {
			return err
		}
		for {
			for _, r := range rows {
				line := cells(r)
				if line == nil {
					continue
				}
				if err := w.Row(line...); err != nil {
					return err
				}
			}
			if len(rows) < page.Limit {
				return nil
			}
			actor, err := a.Accounts.RefreshActor(hc.Context(), actorOf(hc.Context()))
			if err != nil {
				return err
			}
			page = next(rows[len(rows)-1])
			page.Limit = store.PageSize
			if rows, err = fetch(withActor(hc.Context(), actor), page); err != nil {
				return err
			}
		}
	}), nil
}

// describeDownload declares the response of an operation in the OpenAPI document as text
// of a type.
func describeDownload(s section, path, contentType string) {
	ok := s.api.OpenAPI().Paths[path].Get.Responses["200"]
	ok.Content = map[string]*huma.MediaType{contentType: {Schema: &huma.Schema{Type: huma.TypeString}}}
}
