package handlers

import (
	"context"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/requests"
	"weir/web"
)

func (a *App) requestsRoutes(p *echo.Group) {
	p.GET("/requests", a.page(a.requestsPage))
	p.POST("/requests", a.submit(a.newRequestPage, a.createRequestPage))
	p.GET("/requests/new", a.page(a.newRequestPage))
	p.GET("/requests/:id", a.page(a.requestPage))
	p.POST("/requests/:id", a.submit(a.requestPage, a.decideRequestPage))
	p.GET("/requests/:id/withdraw", a.page(a.confirmWithdrawPage))
	p.POST("/requests/:id/withdraw", a.submit(a.confirmWithdrawPage, a.withdrawRequestPage))
	p.POST("/projects/:id/join-requests", a.submit(nil, a.setJoinRequestsPage))
}

// Filters of requests.
const (
	filterPending = "pending"
	filterDecided = "decided"
	filterMine    = "mine"
)

// requestsIn lists the requests that a filter selects.
func (a *App) requestsIn(ctx context.Context, filter string, page store.Page) ([]requests.RequestView, error) {
	if filter == filterMine {
		return a.Requests.Mine(ctx, actorOf(ctx), page)
	}
	return a.Requests.Inbox(ctx, actorOf(ctx), filter == filterDecided, page)
}

func (a *App) requestsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v := web.RequestsView{Filter: c.QueryParam("filter"), Decides: a.Requests.CanDecideAny(actorOf(ctx))}
	switch {
	case !v.Decides:
		v.Filter = filterMine
	case v.Filter != filterMine && v.Filter != filterDecided:
		v.Filter = filterPending
	}
	list, err := a.requestsIn(ctx, v.Filter, pageAfter(c))
	if err != nil {
		return nil, err
	}
	waiting, err := a.Requests.Waiting(ctx, actorOf(ctx))
	v.Waiting = int(waiting)
	v.Rows = models.Map(list, func(r requests.RequestView) models.RequestView { return r.RequestView })
	v.Next = nextPage(c, list, func(r requests.RequestView) int64 { return r.ID })
	return web.RequestsPage(v), err
}

// requestPage is a request's page, with the form of its decision.
func (a *App) requestPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	r, err := a.Requests.Get(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.RequestPageView{RequestView: r.RequestView, Own: r.Own, CanDecide: r.CanDecide, CanWithdraw: r.CanWithdraw,
		Form: formOf(r.Version)}
	putRequested(v.Form, r.Requested)
	v.Form = submittedOr(c, v.Form)
	if r.Facts != nil {
		v.Facts = a.requestFacts(c, r)
		if role := web.ChosenRole(v.Form.Value("join.role_id"), v.Facts.Roles, v.Facts.Left, nil); role > 0 {
			v.Form.Values["join.role_id"] = strconv.FormatInt(role, 10)
		}
	}
	v.Preview, err = a.previewDecision(ctx, r, v.Form)
	return web.RequestPage(v), err
}

func (a *App) requestFacts(c echo.Context, r requests.RequestView) *web.RequestFacts {
	f := r.Facts
	v := &web.RequestFacts{Now: f.Now, Left: f.Remaining(), Members: f.Members, Capacity: capacityRows(f.Capacity), Used: f.Used,
		UsedByOne: f.UsedByOne, Roles: roleChoices(f.Roles), Beyond: f.Beyond}
	if f.Project != nil {
		v.Quota = &f.Project.Quota
	}
	return v
}

func (a *App) decideRequestPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	old, err := a.Requests.Get(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return redirect{}, err
	}
	in := f.decision(old.Requested)
	if err := f.errWith(in.Check(old.QuotaRequest, a.Store.Now())); err != nil {
		return redirect{}, err
	}
	v, err := a.Requests.Decide(ctx, actorOf(ctx), old.ID, in)
	if err != nil {
		return redirect{}, err
	}
	message := models.Say("Approved: %s.", v.What())
	if v.State == models.RequestRefused {
		message = models.Say("Refused: %s.", v.What())
	}
	return redirect{"/requests", message}, nil
}

func (a *App) confirmWithdrawPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	r, err := a.Requests.Get(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmWithdraw(r.RequestView)), err
}

func (a *App) withdrawRequestPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	_, err := a.Requests.Withdraw(ctx, actorOf(ctx), number(c, "id"), f.version())
	return redirect{"/requests?filter=mine", models.Say("Request withdrawn.")}, err
}

func (a *App) setJoinRequestsPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	id, on := number(c, "id"), f.bool("on")
	message := models.Say("Join requests are enabled. Anyone with the project's name or link can request to join.")
	if !on {
		message = models.Say("Join requests are disabled.")
	}
	return redirect{path("projects", id), message}, a.Requests.SetJoinRequests(ctx, actorOf(ctx), id, on)
}

func (a *App) createRequestPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := requests.RequestInput{Requested: f.requested(f.text("kind")), Reason: f.text("reason")}
	if err := f.errWith(in.Check(a.Store.Now())); err != nil {
		return redirect{}, err
	}
	v, err := a.Requests.Submit(ctx, actorOf(ctx), in)
	if err != nil {
		return redirect{}, err
	}
	return redirect{path("requests", v.ID), models.Say("Request submitted: %s. You will be notified of the decision.", v.What())}, nil
}
