package handlers

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

// sharedAge bounds the age of what pages have in common, because lending hours and GPU
// metrics change without a topic.
const sharedAge = time.Second

// maxContents is the number of contents of pages that are cached. One may be some
// megabytes.
const maxContents = 32

// navAge bounds the age of the navigation's counts, for changes by weir commands,
// which send no topics.
const navAge = 10 * time.Second

// shared caches what pages of many requests have in common.
type shared struct {
	nav      *models.Cache[int64, web.NavCounts] // by user
	contents *models.Cache[contentKey, string]
}

// contentKey identifies the content of a page that looks alike for all actors with the
// same rights.
type contentKey struct {
	page, lang string
	can        models.PlatformPermissions
	audience   string // who else has the same rights, in words of the page
}

func newShared(s *models.Store) shared {
	return shared{models.NewCache[int64, web.NavCounts](s, models.MaxCached), models.NewCache[contentKey, string](s, maxContents)}
}

// navCounts are the numbers beside the navigation's entries. What cannot be counted is
// not shown.
func (a *App) navCounts(ctx context.Context, actor policies.Actor) web.NavCounts {
	counts, err := a.shared.nav.Get(ctx, actor.User.ID, func(ctx context.Context) (n web.NavCounts, v models.Validity, err error) {
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

// sharedContent renders the content of a page once for all actors with the same rights,
// until one of its topics changes.
func (a *App) sharedContent(c echo.Context, page, audience string, topics []string, build func(context.Context) (templ.Component, error)) (templ.Component, error) {
	ctx := c.Request().Context()
	key := contentKey{page, a.language(c.Request()), a.Accounts.PlatformPermissions(actorOf(ctx)), audience}
	content, err := a.shared.contents.Get(ctx, key, func(ctx context.Context) (string, models.Validity, error) {
		component, err := build(ctx)
		if err != nil {
			return "", models.Validity{}, err
		}
		a.metrics.Rendered(page)
		var b strings.Builder
		err = component.Render(web.With(ctx, web.Page{Lang: key.lang, Can: key.can, Now: a.Store.Now()}), &b)
		return b.String(), models.Validity{Topics: topics, MaxAge: sharedAge}, err
	})
	return templ.Raw(content), err
}
