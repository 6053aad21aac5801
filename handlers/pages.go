package handlers

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

const (
	languageCookie = "weir_language"
	listLimit      = 50 // rows of a page
)

func queryEscape(s string) string { return url.QueryEscape(s) }

// render writes a page with the frame around it. The page is complete before
// the first byte is sent, so that a failure can still become an error page.
func (a *App) render(c echo.Context, status int, page templ.Component) error {
	var body bytes.Buffer
	if err := page.Render(web.With(c.Request().Context(), a.frame(c)), &body); err != nil {
		return err
	}
	return c.HTMLBlob(status, body.Bytes())
}

func (a *App) frame(c echo.Context) web.Page {
	r := c.Request()
	actor := actorOf(r.Context())
	p := web.Page{Lang: a.language(r), Path: shownAt(r), Now: a.Store.Now(), Version: a.Version}
	if actor.User.ID == 0 {
		return p
	}
	p.Mark, _ = r.Context().Value(markKey{}).(string)
	p.User, p.Admin, p.Auditor = &actor.User, actor.User.Admin, actor.User.Auditor
	p.Flash = a.takeFlash(r.Context())
	if live, err := a.Workspaces.CountLive(r.Context(), actor); err == nil {
		p.Nav.Workspaces = int(live)
	}
	if waiting, err := a.Requests.Waiting(r.Context(), actor); err == nil {
		p.Nav.Requests = int(waiting)
	}
	if unread, err := a.Notifications.Unread(r.Context(), actor); err == nil {
		p.Nav.Notifications = int(unread)
	}
	return p
}

// spoken is a context in which texts are in the reader's language.
func (a *App) spoken(c echo.Context) context.Context {
	return web.With(c.Request().Context(), web.Page{Lang: a.language(c.Request())})
}

// shownAt is the address at which the page can be loaded again: that of the
// form when it comes back refused.
func shownAt(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return r.URL.RequestURI()
	}
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return localPath(from.RequestURI())
	}
	return "/"
}

func (a *App) language(r *http.Request) string {
	chosen := ""
	if cookie, err := r.Cookie(languageCookie); err == nil {
		chosen = cookie.Value
	}
	return web.Negotiate(r.Header.Get("Accept-Language"), chosen)
}

// done keeps a message for the next page and goes there.
func (a *App) done(c echo.Context, to string, message models.Text) error {
	a.flash(c.Request().Context(), "ok", message)
	return c.Redirect(http.StatusSeeOther, to)
}

// refused shows a form again with what was wrong. What is not the input's
// fault goes the usual way of errors.
func (a *App) refused(c echo.Context, err error, again func() (templ.Component, error)) error {
	var e *models.Error
	named := errors.As(err, &e) && len(e.Fields) > 0 // what the form may choose otherwise
	switch kind := models.KindOf(err); {
	case kind == models.KindInvalid, kind == models.KindNoCapacity, kind == models.KindConflict, kind == models.KindForbidden && named:
		page, pageErr := again()
		if pageErr != nil {
			return pageErr
		}
		return a.render(c, statusOf(models.KindOf(err)), page)
	default:
		return err
	}
}

// pageAfter reads the cursor of a list.
func pageAfter(c echo.Context, limit int) models.Page {
	after, err := strconv.ParseInt(c.QueryParam("cursor"), 10, 64)
	if err != nil || after < 0 {
		after = 0
	}
	return models.Page{After: after, Limit: limit}
}

// nextPage is the address of the page after the row with id last, or empty
// when this page was not full.
func nextPage(c echo.Context, n, limit int, last int64) string {
	if n < limit {
		return ""
	}
	q := c.QueryParams()
	q.Set("cursor", strconv.FormatInt(last, 10))
	return c.Request().URL.Path + "?" + q.Encode()
}

// localPath keeps a redirect on this site.
func localPath(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") || strings.ContainsAny(path, "\\\r\n") {
		return "/"
	}
	return path
}

func path(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		switch v := p.(type) {
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case string:
			b.WriteString(v)
		}
	}
	return b.String()
}

// number reads a numeric part of the path; anything else is not there.
func number(c echo.Context, name string) int64 {
	n, err := strconv.ParseInt(c.Param(name), 10, 64)
	if err != nil || n < 1 {
		return -1
	}
	return n
}
