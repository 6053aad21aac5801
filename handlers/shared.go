package handlers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/web"
)

// contentAge bounds the age of the content of pages, because lending hours and GPU
// metrics change without a topic.
const contentAge = time.Second

// maxContents is how many bytes of content are cached. That of a page may be some
// megabytes.
const maxContents = 64 << 20

// navAge bounds the age of the navigation's counts, for changes by weir commands,
// which send no topics.
const navAge = 10 * time.Second

// shared caches what pages of many requests have in common.
type shared struct {
	nav      *store.Cache[int64, web.NavCounts] // by user
	contents *store.Cache[contentKey, web.Content]
}

// contentKey identifies the content of a page.
type contentKey struct {
	page, host, lang string
	can              models.PlatformPermissions
	audience         string // whose it is
}

func newShared(s *store.Store) shared {
	return shared{store.NewCache[int64, web.NavCounts](s, store.MaxCached),
		store.NewWeightedCache(s, maxContents, func(k contentKey, c web.Content) int {
			return 1000 + len(k.page) + len(k.host) + len(k.audience) + c.Size()
		})}
}

// navCounts are the numbers beside the navigation's entries. What cannot be counted is
// not shown.
func (a *App) navCounts(ctx context.Context, actor policies.Actor) web.NavCounts {
	counts, err := a.shared.nav.Get(ctx, actor.User.ID, func(ctx context.Context) (n web.NavCounts, v store.Validity, err error) {
		actor, err := a.Accounts.Load(ctx, actor.User.ID)
		if err != nil {
			return n, v, err
		}
		active, err1 := a.Workspaces.CountActive(ctx, actor)
		waiting, err2 := a.Requests.Waiting(ctx, actor)
		unread, err3 := a.Notifications.Unread(ctx, actor)
		v = actor.Validity()
		v.Topics, v.MaxAge = []string{"requests", "user:" + strconv.FormatInt(actor.User.ID, 10)}, navAge
		return web.NavCounts{Workspaces: int(active), Requests: int(waiting), Notifications: int(unread)}, v, errors.Join(err1, err2, err3)
	})
	if err != nil && ctx.Err() == nil {
		a.Logger.WarnContext(ctx, "cannot count for the navigation", "err", err)
	}
	return counts
}

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
