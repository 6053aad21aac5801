package handlers

import (
	"context"
	"errors"
	"strconv"
	"time"

	"weir/models/store"
	"weir/policies"
	"weir/web"
)

// navAge bounds the age of the navigation's counts, for changes by weir commands,
// which send no topics.
const navAge = 10 * time.Second

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
