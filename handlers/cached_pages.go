package handlers

import (
	"context"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models/store"
	"weir/policies"
	"weir/web"
)

// contentAge bounds the age of the content of pages, because lending hours and GPU
// metrics change without a topic.
const contentAge = time.Second

// cached answers with the page that build returns. Its content is built once for all
// requests of the same actor for the same address, until anything changes.
func (a *App) cached(build pageFunc) echo.HandlerFunc { return a.page(a.cachedPage(build)) }

func (a *App) cachedPage(build pageFunc) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		actor := actorOf(ctx)
		// with the error of another session, a reader would be signed out
		key := contentKey{page: c.Request().URL.RequestURI(), host: c.Request().Host, audience: actor.Session}
		return a.content(c, key, actor, func(ctx context.Context) (page templ.Component, v store.Validity, err error) {
			// The rights may have changed since the request was authenticated.
			if actor, err = a.Accounts.RefreshActor(ctx, actor); err != nil {
				return nil, v, err
			}
			c.SetRequest(c.Request().WithContext(withActor(ctx, actor)))
			page, err = build(c.Request().Context(), c)
			v = actor.Validity()
			v.Topics = contentTopics(actor, c)
			return page, v, err
		})
	}
}

// inOneState builds a page from one state of the database. build must read in its context,
// not in that of the request.
func (a *App) inOneState(build pageFunc) pageFunc {
	return func(ctx context.Context, c echo.Context) (page templ.Component, err error) {
		err = a.Store.InSnapshot(ctx, func(ctx context.Context) error {
			page, err = build(ctx, c)
			return err
		})
		return page, err
	}
}

// contentTopics are the topics of all that cached pages show. They show no telemetry.
func contentTopics(actor policies.Actor, c echo.Context) []string {
	topics := []string{"pool", "environments", "projects", "requests", "departments", "user:" + strconv.FormatInt(actor.User.ID, 10)}
	for project := range actor.Grants {
		topics = append(topics, "project:"+strconv.FormatInt(project, 10))
	}
	if id := c.Param("id"); id != "" {
		topics = append(topics, "project:"+id)
	}
	return topics
}

// content returns the content of a page for a reader. It is rendered once until it is no
// longer valid.
func (a *App) content(c echo.Context, key contentKey, reader policies.Actor,
	build func(context.Context) (templ.Component, store.Validity, error)) (web.Content, error) {
	key.lang, key.can = a.language(c.Request()), a.Accounts.PlatformPermissions(reader)
	return a.shared.contents.Get(c.Request().Context(), key, func(ctx context.Context) (content web.Content, v store.Validity, err error) {
		now := a.Store.Now()
		page, v, err := build(ctx)
		if err != nil {
			return content, v, err
		}
		a.metrics.Rendered(c.Path())
		v.MaxAge = contentAge
		v.EndAt(new(now.Truncate(contentAge).Add(contentAge))) // dates end with a second
		content, err = web.ContentOf(web.With(ctx, web.Page{Lang: key.lang, User: &reader.User, Can: key.can, Now: now, Path: key.page}), page)
		return content, v, err
	})
}
