package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"time"

	"weir/handlers"
)

const (
	apiPath     = "/api/v1"
	pageSize    = 200      // items of a page
	maxResponse = 64 << 20 // bytes
)

// client calls the REST API of a portal for one account.
type client struct {
	server string // scheme://host[:port]
	token  string // secret
	http   *http.Client
	key    string // of the POST requests, so that they can be repeated; empty: none
}

// newClient makes a client with a timeout for each response. It follows no
// redirects: the token must not be sent to another server.
func newClient(server, token string, timeout time.Duration) *client {
	return &client{server: server, token: token, http: &http.Client{Timeout: timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// through makes c use the socket of the workspace in which it runs, where no token is needed;
// an empty socket changes nothing.
func (c *client) through(socket string) *client {
	if socket != "" {
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		}}
	}
	return c
}

// direct makes c use no proxy: none reaches the listener for workspaces, and none may read their credential.
func (c *client) direct() { c.http.Transport = &http.Transport{} }

// response is a response of the server; body is JSON, or empty.
type response struct {
	body []byte
	etag string // the version of a single resource
}

// call makes one request. body, unless nil, is sent as JSON; etag, unless
// empty, as If-Match, so that the call fails when the resource was changed
// meanwhile.
func (c *client) call(ctx context.Context, method, path string, body any, etag string) (response, error) {
	raw, res, err := c.do(ctx, method, path, body, etag)
	if err == nil && len(raw) > 0 && !json.Valid(raw) {
		err = c.notAPI(res)
	}
	if err != nil {
		return response{}, err
	}
	return response{raw, res.Header.Get("ETag")}, nil
}

// bytes is a GET of what is not JSON.
func (c *client) bytes(ctx context.Context, path string) ([]byte, http.Header, error) {
	raw, res, err := c.do(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return nil, nil, err
	}
	return raw, res.Header, nil
}

// do makes one request and reads the response.
func (c *client) do(ctx context.Context, method, path string, body any, etag string) ([]byte, *http.Response, error) {
	req, err := c.request(ctx, method, path, body, etag)
	if err != nil {
		return nil, nil, err
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, nil, c.failed(ctx, err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(res.Body, maxResponse+1))
	switch {
	case err != nil:
		return nil, nil, c.failed(ctx, err)
	case len(raw) > maxResponse:
		return nil, nil, c.unusable(fmt.Errorf("the response exceeds %d MiB", maxResponse>>20))
	case res.StatusCode >= 300:
		return nil, nil, c.refused(res, raw)
	}
	return raw, res, nil
}

func (c *client) request(ctx context.Context, method, path string, body any, etag string) (*http.Request, error) {
	var in io.Reader
	if body != nil {
		raw, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(raw)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.server+apiPath+path, in)
	if err != nil {
		return nil, err
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Header.Set("Accept", "application/json")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.key != "" && method == http.MethodPost {
		req.Header.Set("Idempotency-Key", c.key)
	}
	if etag != "" {
		req.Header.Set("If-Match", etag)
	}
	return req, nil
}

// failed describes an error of the connection.
func (c *client) failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("interrupted; the request may have been carried out")
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		if err = wrapped.Err; wrapped.Timeout() {
			err = fmt.Errorf("no response within %s; increase --timeout", c.http.Timeout)
		}
	}
	return c.unreachable(err)
}

// refused reads a problem+json.
func (c *client) refused(res *http.Response, raw []byte) error {
	var p handlers.Problem
	if err := json.Unmarshal(raw, &p); err != nil || p.Detail == "" {
		return c.notAPI(res)
	}
	return refusal(res.StatusCode, p)
}

// notAPI is the error for a response that is none of the API's.
func (c *client) notAPI(res *http.Response) error {
	if to, err := res.Location(); err == nil {
		return c.unusable(fmt.Errorf("it redirects to %s://%s; use that as --server", to.Scheme, to.Host))
	}
	return c.unusable(fmt.Errorf("unexpected response (%s, %q); check that --server is the URL of a portal",
		res.Status, res.Header.Get("Content-Type")))
}

// fetch is a GET of one resource.
func fetch[T any](ctx context.Context, c *client, path string) (v T, a response, err error) {
	if a, err = c.call(ctx, http.MethodGet, path, nil, ""); err == nil {
		err = decode(c, a.body, &v)
	}
	return v, a, err
}

// fetchAll is a GET of all pages of a list; raw is a list of all items as the
// portal sent them.
func fetchAll[T any](ctx context.Context, c *client, path string, query url.Values) (items []T, raw []byte, err error) {
	whole := struct {
		Items []json.RawMessage `json:"items"`
	}{Items: []json.RawMessage{}}
	ask := url.Values{"limit": {fmt.Sprint(pageSize)}}
	maps.Copy(ask, query)
	for {
		page, _, err := fetch[handlers.List[json.RawMessage]](ctx, c, path+"?"+ask.Encode())
		if err != nil {
			return nil, nil, err
		}
		whole.Items = append(whole.Items, page.Items...)
		if page.NextCursor == "" {
			break
		}
		if page.NextCursor == ask.Get("cursor") {
			return nil, nil, c.unusable(fmt.Errorf("the list %s does not end", path))
		}
		ask.Set("cursor", page.NextCursor)
	}
	items = make([]T, len(whole.Items))
	for i, item := range whole.Items {
		if err := decode(c, item, &items[i]); err != nil {
			return nil, nil, err
		}
	}
	raw, err = json.Marshal(whole)
	return items, raw, err
}

// decode decodes the JSON of a response and ignores unknown fields.
func decode(c *client, raw []byte, v any) error {
	if len(raw) == 0 {
		return c.unusable(errors.New("the response is empty"))
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return c.unusable(fmt.Errorf("invalid response: %w; the server may run another version", err))
	}
	return nil
}

// unreachable is the error without a response.
func (c *client) unreachable(err error) error { return c.failure("cannot reach the server", err) }

// unusable is the error for a response that a portal of this version does not send.
func (c *client) unusable(err error) error { return c.failure("unusable response of the server", err) }

func (c *client) failure(what string, err error) error {
	return WithExitCode(fmt.Errorf("%s %s: %s", what, c.server, clean(err.Error())), ExitUnreachable)
}
