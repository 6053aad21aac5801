package handlers

import (
	"context"
	"fmt"
	"net/http"

	ics "github.com/arran4/golang-ical"

	"weir/models"
	"weir/models/store"
	"weir/pool/broker"
)

// feedPath is where calendar programs read reservations. They know only passwords: there,
// an access token is also taken as the password of Basic authentication.
const feedPath = apiPrefix + "/reservations.ics"

// feedChallenge asks for a password, too: a calendar program sends only what it is asked for.
var feedChallenge = http.Header{"Www-Authenticate": {"Bearer", `Basic realm="Weir"`}}

// maxFeed bounds the reservations of a feed, the newest first.
const maxFeed = 1000

func (a rest) feedOperation(s section) {
	register(a, s, route{http.MethodGet, "/reservations.ics", 200, "subscribe-reservations",
		models.Say("Subscribe to reservations with a calendar program (iCalendar)")}, a.reservationsFeed)
	describeDownload(s, "/reservations.ics", "text/calendar")
}

// FeedQuery selects the reservations of a feed.
type FeedQuery struct {
	State     string `query:"state" enum:"live,ended,all" default:"all" doc:"live: granted or active; ended: done, canceled or expired"`
	ProjectID int64  `query:"project_id" minimum:"1" doc:"project ID"`
	UserID    int64  `query:"user_id" minimum:"1" doc:"user ID of the owner"`
}

// Feed is a calendar as RFC 5545 defines it.
type Feed struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (a rest) reservationsFeed(ctx context.Context, in *FeedQuery) (*Feed, error) {
	filter := store.ReservationFilter{ProjectID: in.ProjectID, UserID: in.UserID, States: reservationStates(in.State)}
	r := httpRequestOf(ctx)
	cal := ics.NewCalendar()
	cal.SetProductId("-//Weir//Reservations//EN")
	cal.SetXWRCalName("Weir")
	cal.SetRefreshInterval("PT15M")
	page := store.Page{Limit: store.PageSize}
	for n := 0; n < maxFeed; n += page.Limit {
		list, err := a.Broker.List(ctx, actorOf(ctx), filter, page)
		if err != nil {
			return nil, err
		}
		for _, v := range list {
			addEvents(cal, v, r.Host, a.portalURL(r))
		}
		if len(list) < page.Limit {
			break
		}
		page.After = list[len(list)-1].ID
	}
	return &Feed{"text/calendar; charset=utf-8", []byte(cal.Serialize(ics.WithNewLine("\r\n")))}, nil
}

// addEvents adds a reservation: an event for each span in which it has another number of
// GPUs. Its shares are sorted by start; one that was canceled before it began has none.
func addEvents(cal *ics.Calendar, v broker.View, host, portal string) {
	for from := 0; from < len(v.Grants); {
		g, until := v.Grants[from], from+1
		for until < len(v.Grants) && v.Grants[until].StartsAt.Equal(g.StartsAt) && v.Grants[until].EndsAt.Equal(g.EndsAt) {
			until++
		}
		e := cal.AddEvent(fmt.Sprintf("reservation-%d-%d@%s", v.ID, g.ID, host))
		e.SetDtStampTime(v.CreatedAt.UTC())
		e.SetSequence(int(v.Version))
		e.SetStartAt(g.StartsAt.UTC())
		e.SetEndAt(g.EndsAt.UTC())
		e.SetSummary(fmt.Sprintf("%s: %d × %d GPU cores, %s", v.ProjectName, until-from, g.Cores, g.Model))
		memory := models.FormatMiB(g.MemoryMiB)
		e.SetDescription(fmt.Sprintf("%s\n%s GPU memory per GPU, %s\n%s", v.UserName, memory, g.ProviderName, v.State.Words()))
		e.SetURL(portal + path("reservations", v.ID))
		from = until
	}
}
