package handlers

import (
	"context"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool"
	"weir/pool/estimates"
	"weir/pool/queue"
	"weir/web"
)

func (a *App) poolRoutes(p *echo.Group) {
	p.GET("/pool", a.page(a.poolPage))
}

// poolPage is built once for all actors with the same rights.
func (a *App) poolPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	reader, audience, err := a.Pool.SharedReader(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	if audience == "" {
		return a.cachedPage(func(ctx context.Context, _ echo.Context) (templ.Component, error) { return a.poolOf(ctx, actorOf(ctx)) })(ctx, c)
	}
	key := contentKey{page: "/pool", audience: audience}
	return a.content(c, key, reader, func(ctx context.Context) (templ.Component, store.Validity, error) {
		page, err := a.poolOf(ctx, reader)
		return page, store.Validity{Topics: []string{"pool"}}, err
	})
}

func (a *App) poolOf(ctx context.Context, actor policies.Actor) (templ.Component, error) {
	view, err := a.Pool.View(ctx, actor)
	if err != nil {
		return nil, err
	}
	v := poolView(view, actor.User.ID)
	open, err := a.Enrollment.Authorizations(ctx, actor)
	if err != nil && models.KindOf(err) != models.KindForbidden { // the others see the pool without them
		return nil, err
	}
	for _, o := range open {
		v.Offered = append(v.Offered, web.OfferedTo{GPUCode: o.GPUCode, Name: o.Name, Until: o.ExpiresAt})
	}
	return web.PoolPage(v), nil
}

// poolView is the pool as its page draws it.
func poolView(view pool.View, me int64) web.PoolView {
	v := web.PoolView{GPUs: int64(view.Totals.GPUs), Cores: view.Totals.Cores, InUse: view.Totals.CoresInUse, Computing: view.Computing,
		Placed: view.DecisionCount, Changed: lastChange(view)}
	for _, p := range view.Providers {
		if p.Agent || len(p.Devices) > 0 { // the portal's own machine may have no GPU
			v.Providers = append(v.Providers, providerView(p, me))
		}
	}
	v.Queue = models.Map(view.Waiting, queueRow)
	v.Decisions = models.Map(view.Decisions, func(d store.DecisionRecordView) web.DecisionRow {
		return web.DecisionRow{At: d.At, Who: d.UserName, Outcome: d.Outcome, Demand: d.Demand, Explanation: d.Explanation}
	})
	v.Unmet = models.Map(view.Unmet, func(u pool.UnmetView) web.UnmetRow { return web.UnmetRow(u) })
	return v
}

// lastChange is the time of the latest visible share or decision.
func lastChange(view pool.View) (last *time.Time) {
	later := func(t time.Time) {
		if last == nil || t.After(*last) {
			last = &t
		}
	}
	for _, d := range view.Decisions {
		later(d.At)
	}
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			for _, s := range d.Shares {
				later(s.From)
			}
		}
	}
	return last
}

func queueRow(w pool.WaitingView) web.QueueRow {
	row := web.QueueRow{Position: w.Position, Anonymous: w.Anonymous, GPUs: w.Demand.GPUs, Cores: w.Demand.Cores,
		Why: w.Reason, Since: w.RequestedAt, Starts: w.Estimate.Text, Estimated: w.Estimate.Outcome == estimates.Placed &&
			!w.Estimate.Known, Behind: waitReason(w.Behind)}
	if !w.Anonymous {
		row.Label, row.Href = w.ProjectName+" · "+w.UserName+" · "+w.Name, w.Kind.Path(w.ObjectID)
	}
	return row
}

// waitReason is the reason that a request is not ahead of its predecessor in the queue.
func waitReason(c queue.Criterion) models.Text {
	switch c {
	case queue.Priority:
		return models.Say("Behind a project with higher priority.")
	case queue.Overdue:
		return models.Say("Behind a request that has exceeded the maximum wait time.")
	case queue.Fairness:
		return models.Say("Behind a project that uses a smaller part of its quota.")
	case queue.Age:
		return models.Say("Behind an older request.")
	}
	return models.Text{}
}
