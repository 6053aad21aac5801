package handlers

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/web"
)

const (
	languageCookie = "weir_language"
	pageSize       = 50 // rows of a page
)

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
	p := web.Page{Lang: a.language(r), Path: reloadPath(r), Now: a.Store.Now(), Version: a.Version}
	if err := a.Store.CheckSpace(); err != nil {
		p.DiskFull = publicError(err).Message
	}
	if actor.User.ID == 0 {
		return p
	}
	p.EventCursor, _ = r.Context().Value(cursorKey{}).(string)
	p.User, p.Can = &actor.User, a.Accounts.PlatformPermissions(actor)
	if !byScript(r) {
		p.Flash = a.takeFlash(r.Context(), r.URL.Path)
	}
	p.Nav = a.navCounts(r.Context(), actor)
	return p
}

// byScript reports whether a script asked for the page, to show a part of it:
// a preview or a change. A message waits for the next whole page.
func byScript(r *http.Request) bool {
	return r.Header.Get("HX-Request") != "" || r.Header.Get("Sec-Fetch-Dest") == "empty"
}

// localized is a context in which texts are in the reader's language.
func (a *App) localized(c echo.Context) context.Context {
	return web.With(c.Request().Context(), web.Page{Lang: a.language(c.Request())})
}

// reloadPath is the address for reloading the page: that of the form when it is shown
// again.
func reloadPath(r *http.Request) string {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return r.URL.RequestURI()
	}
	if from, err := url.Parse(r.Referer()); err == nil && from.Host == r.Host {
		return models.LocalPath(from.RequestURI())
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

// pageFunc builds a page.
type pageFunc func(context.Context, echo.Context) (templ.Component, error)

// page answers with the page that build returns.
func (a *App) page(build pageFunc) echo.HandlerFunc {
	return func(c echo.Context) error { return a.showPage(c, http.StatusOK, build) }
}

func (a *App) showPage(c echo.Context, status int, build pageFunc) error {
	page, err := build(c.Request().Context(), c)
	if err != nil {
		return err
	}
	return a.render(c, status, page)
}

// renderSubmitted shows a form as it was sent.
func (a *App) renderSubmitted(c echo.Context, status int, sent web.Form, build pageFunc) error {
	c.Set(sentKey, sent)
	return a.showPage(c, status, build)
}

// redirect is the next page after a change, with a message for it.
type redirect struct {
	to      string
	message models.Text
}

// submit handles a form: do makes the change. When the input is refused, or the
// form asks for a preview only, build shows the form again as it was sent. Buttons
// without fields have no build.
func (a *App) submit(build pageFunc, do func(context.Context, echo.Context, *form) (redirect, error)) echo.HandlerFunc {
	return func(c echo.Context) error {
		f, err := readForm(c)
		if err != nil {
			return err
		}
		if build != nil && f.bool("preview") {
			return a.renderSubmitted(c, http.StatusOK, f.asSubmitted(), build)
		}
		next, err := do(c.Request().Context(), c, f)
		if err != nil {
			return a.refused(c, f, err, build)
		}
		return a.redirectWithFlash(c, next.to, next.message)
	}
}

// redirectWithFlash redirects to a page with a message for it.
func (a *App) redirectWithFlash(c echo.Context, to string, message models.Text) error {
	a.flash(c.Request().Context(), to, "ok", message)
	return c.Redirect(http.StatusSeeOther, to)
}

// refused shows a form again with the reasons for refusing it. Errors that the
// input does not cause are returned.
func (a *App) refused(c echo.Context, f *form, err error, build pageFunc) error {
	var e *models.Error
	named := errors.As(err, &e) && len(e.Fields) > 0 // another choice in the form may be allowed
	switch kind := models.KindOf(err); {
	case build == nil:
		return err
	case kind == models.KindInvalid, kind == models.KindNoCapacity, kind == models.KindConflict, kind == models.KindRateLimited,
		kind == models.KindForbidden && named:
		setHeaders(c, err)
		return a.renderSubmitted(c, kind.Status(), f.asSubmitted().Refuse(err), build)
	default:
		return err
	}
}

// showing is a page that is known.
func showing(page templ.Component) pageFunc {
	return func(context.Context, echo.Context) (templ.Component, error) { return page, nil }
}

// find finds what a page is about in a list; missing is the error if it is not there.
func find[T any](list []T, err error, missing *models.Error, is func(T) bool) (one T, _ error) {
	if err != nil {
		return one, err
	}
	if i := slices.IndexFunc(list, is); i >= 0 {
		return list[i], nil
	}
	return one, missing
}

// pageAfter reads the cursor of a list.
func pageAfter(c echo.Context) store.Page {
	page, _ := parseCursor(c.QueryParam("cursor"))
	page.Limit = pageSize
	return page
}

// nextPage is the address of the page after a list by ids, or empty when this page was not full.
func nextPage[T any](c echo.Context, list []T, id func(T) int64) string {
	return following(c, list, byID(id))
}

// following is nextPage for a list with a sort key; next is the page that follows an item.
func following[T any](c echo.Context, list []T, next func(T) store.Page) string {
	if len(list) < pageSize {
		return ""
	}
	return pageAt(c, next(list[len(list)-1]))
}

// pageAt is the address of another page of a list.
func pageAt(c echo.Context, page store.Page) string {
	q := c.QueryParams()
	q.Set("cursor", cursor(page))
	return c.Request().URL.Path + "?" + q.Encode()
}
