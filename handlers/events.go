package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/handlers/live"
	"weir/models"
	"weir/policies"
)

var errApart = models.Unavailable(nil, "This server is disconnected from the other portal servers. Try again in a moment.")

// streamEvents streams the names of topics that have changed, as long as the
// reader may follow them.
func (a *App) streamEvents(c echo.Context) error {
	ctx := c.Request().Context()
	if !a.Holds() {
		return errApart
	}
	actor, topics := actorOf(ctx), c.QueryParams()["topic"]
	if err := a.mayFollow(ctx, actor, topics); err != nil {
		return err
	}
	s := a.events.Subscribe(actor, topics, c.QueryParam("since"))
	if s == nil {
		return echo.NewHTTPError(http.StatusTooManyRequests).SetInternal(models.NoCapacity("",
			"You have reached the maximum of %d open live pages. Close one, then reload this page.", live.MaxStreams))
	}
	// A right may have ended just before its revocation could see this stream.
	err := a.mayFollow(ctx, actor, topics)
	if err == nil {
		err = a.events.Serve(c.Response(), s)
	}
	if err != nil {
		a.events.Drop(s)
	}
	return err
}

// mayFollow checks, with the rights of now, that every topic is the reader's
// to see.
func (a *App) mayFollow(ctx context.Context, reader policies.Actor, topics []string) error {
	actor, err := a.Accounts.StillActive(ctx, reader)
	if err != nil {
		return err
	}
	if len(topics) == 0 || len(topics) > live.MaxTopics {
		return models.Invalid("topic", "must list 1 to %d topics", live.MaxTopics)
	}
	for _, topic := range topics {
		if !a.mayFollowOne(ctx, actor, topic) {
			return models.NotFound("topic")
		}
	}
	return nil
}

func (a *App) mayFollowOne(ctx context.Context, actor policies.Actor, topic string) bool {
	kind, rest, _ := strings.Cut(topic, ":")
	id, err := strconv.ParseInt(rest, 10, 64)
	switch kind {
	case "pool", "environments", "projects", "requests":
		return rest == ""
	case "departments":
		return rest == "" && a.Access.May(actor, policies.Platform, policies.UserRead)
	case "deliveries":
		return rest == "" && a.Access.May(actor, policies.Platform, policies.WebhookRead)
	case "telemetry": // of a provider
		return err == nil && a.Access.May(actor, policies.Platform, policies.PoolRead)
	case "user":
		return err == nil && id == actor.User.ID
	case "project":
		return err == nil && a.Access.May(actor, id, policies.ProjectRead)
	case "workspace":
		if err != nil {
			return false
		}
		w, err := a.Store.Read(ctx).Workspace(actor.Scope(), id)
		return err == nil && a.Access.MayOwned(actor, w.UserID, w.ProjectID, policies.WorkspaceRead)
	default:
		return false
	}
}
