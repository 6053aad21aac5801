package handlers

import (
	"time"

	"github.com/labstack/echo/v4"

	"weir/handlers/live"
	"weir/models"
)

// eventsPath is the path of the event stream.
const eventsPath = "/events"

var errApart = models.Unavailable(nil, "This server is disconnected from the other portal servers. Try again in a moment.")

// streamsRetry is when a client with too many streams may try again.
const streamsRetry = 10 * time.Second

// streamEvents streams the names of topics that have changed, as long as the
// reader may follow them.
func (a *App) streamEvents(c echo.Context) error {
	ctx := c.Request().Context()
	if !a.Holds() {
		return errApart
	}
	actor, topics := actorOf(ctx), c.QueryParams()["topic"]
	if len(topics) == 0 || len(topics) > live.MaxTopics {
		return models.Invalid("topic", "must list 1 to %d topics", live.MaxTopics)
	}
	if err := a.Accounts.CheckTopics(ctx, actor, topics); err != nil {
		return err
	}
	s := a.events.Subscribe(actor, topics, c.QueryParam("since"))
	if s == nil {
		return models.RateLimited(streamsRetry, "You have reached the maximum of %d open live pages. Close one, then reload this page.",
			live.MaxStreams)
	}
	// A right may have ended just before its revocation could see this stream.
	err := a.Accounts.CheckTopics(ctx, actor, topics)
	if err == nil {
		err = a.events.Serve(c.Response(), s)
	}
	if err != nil {
		a.events.Drop(s)
	}
	return err
}
