package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/requests"
	"weir/web"
)

func (a *App) requestsRoutes(p *echo.Group) {
	p.GET("/requests", a.requestsPage)
	p.POST("/requests", a.createRequestPage)
	p.GET("/requests/new", a.newRequestPage)
	p.GET("/requests/:id", a.requestPage)
	p.POST("/requests/:id", a.decideRequestPage)
	p.POST("/requests/:id/withdraw", a.withdrawRequestPage)
	p.POST("/projects/:id/join-requests", a.setJoinRequestsPage)
}

// The boxes of requests.
const (
	boxInbox   = "inbox"
	boxSettled = "settled"
	boxMine    = "mine"
)

// requestsIn lists what lies in a box.
func (a *App) requestsIn(ctx context.Context, box string, page models.Page) ([]requests.RequestView, error) {
	if box == boxMine {
		return a.Requests.Mine(ctx, actorOf(ctx), page)
	}
	return a.Requests.Inbox(ctx, actorOf(ctx), box == boxSettled, page)
}

func (a *App) requestsPage(c echo.Context) error {
	ctx := c.Request().Context()
	v := web.RequestsView{Box: c.QueryParam("box"), Decides: a.Requests.Decides(actorOf(ctx))}
	switch {
	case !v.Decides:
		v.Box = boxMine
	case v.Box != boxMine && v.Box != boxSettled:
		v.Box = boxInbox
	}
	list, err := a.requestsIn(ctx, v.Box, pageAfter(c, listLimit))
	if err != nil {
		return err
	}
	waiting, err := a.Requests.Waiting(ctx, actorOf(ctx))
	v.Waiting = int(waiting)
	for _, r := range list {
		v.Rows = append(v.Rows, r.RequestView)
	}
	if n := len(list); n > 0 {
		v.Next = nextPage(c, n, listLimit, list[n-1].ID)
	}
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.RequestsPage(v))
}

func (a *App) requestPage(c echo.Context) error {
	page, err := a.requestForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// requestForm is a request's page, with the decision as it was typed or, when
// typed is nil, as it was asked.
func (a *App) requestForm(c echo.Context, typed *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	r, err := a.Requests.Get(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.RequestPageView{RequestView: r.RequestView, Own: r.Own, MayDecide: r.MayDecide, MayWithdraw: r.MayWithdraw, Form: formOf(r.Version)}
	putAsked(v.Form, r.Requested)
	if typed != nil {
		v.Form = *typed
	}
	if r.Facts != nil {
		v.Facts = a.requestFacts(c, r)
	}
	v.Preview, err = a.previewDecision(ctx, r, v.Form)
	return web.RequestPage(v), err
}

func (a *App) requestFacts(c echo.Context, r requests.RequestView) *web.RequestFacts {
	f := r.Facts
	v := &web.RequestFacts{Now: f.Now, Left: f.Remaining(), Members: f.Members, Capacity: allocationRows(f.Capacity), Used: f.Used, UsedByOne: f.UsedByOne,
		Roles: roleChoices(f.Roles), Beyond: f.Beyond}
	if f.Project != nil {
		v.Quota = &f.Project.Quota
	}
	if r.Kind == models.RequestPeriod || r.Kind == models.RequestDeadline {
		v.Ends = ends(a.spoken(c), f.Until)
	}
	return v
}

func (a *App) decideRequestPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	old, err := a.Requests.Get(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.requestForm(c, f.typed()) })
	}
	in := f.decision(old.Requested)
	var v requests.RequestView
	if err = f.err(nil); err == nil {
		v, err = a.decide(ctx, old.ID, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.requestForm(c, &w)
		})
	}
	message := models.Say("Approved: %s.", v.What())
	if v.State == models.RequestRefused {
		message = models.Say("Refused: %s.", v.What())
	}
	return a.done(c, "/requests", message)
}

// decide decides a request; what is approved may let others start.
func (a *App) decide(ctx context.Context, id int64, in requests.DecisionInput) (requests.RequestView, error) {
	v, err := a.Requests.Decide(ctx, actorOf(ctx), id, in)
	if err == nil {
		a.Wake()
	}
	return v, err
}

func (a *App) withdrawRequestPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if _, err := a.Requests.Withdraw(ctx, actorOf(ctx), number(c, "id"), f.version()); err != nil {
		return err
	}
	return a.done(c, "/requests?box=mine", models.Say("Request withdrawn."))
}

func (a *App) setJoinRequestsPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id, on := number(c, "id"), f.bool("on")
	if err := a.Requests.SetJoinRequests(ctx, actorOf(ctx), id, on); err != nil {
		return err
	}
	message := models.Say("Join requests are enabled. Anyone with the project's name or link can request to join.")
	if !on {
		message = models.Say("Join requests are disabled.")
	}
	return a.done(c, path("projects", id), message)
}

func (a *App) createRequestPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	kind := f.text("kind")
	if f.bool("preview") {
		return a.previewed(c, func() (templ.Component, error) { return a.askForm(c, kind, f.number(kind+".project_id"), f.typed()) })
	}
	in := requests.RequestInput{Requested: f.asked(kind), Reason: f.text("reason")}
	var v requests.RequestView
	if err = f.err(nil); err == nil {
		v, err = a.Requests.Submit(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.askForm(c, kind, f.number(kind+".project_id"), &w)
		})
	}
	return a.done(c, path("requests", v.ID), models.Say("Request submitted: %s. You will be notified of the decision.", v.What()))
}

func (a *App) newRequestPage(c echo.Context) error {
	project, err := strconv.ParseInt(c.QueryParam("project_id"), 10, 64)
	if err != nil || project < 0 {
		project = 0
	}
	page, err := a.askForm(c, c.QueryParam("kind"), project, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}
