package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/pool"
	"weir/pool/placement"
	"weir/pool/placement/history"
	"weir/web"
)

func (a *App) planningRoutes(p *echo.Group) {
	p.GET("/pool/what-if", a.planningPage)
}

// whatIfInput reads the question from a form.
func (f *form) whatIfInput() pool.WhatIfInput {
	return pool.WhatIfInput{Add: f.text("add"), Days: f.number("days"), Policy: f.text("policy")}
}

func (a *App) planningPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	if err := a.Access.Check(actor, 0, "provider", "read"); err != nil {
		return err
	}
	f, err := readForm(c)
	if err != nil {
		return err
	}
	v := web.WhatIfView{Form: f.asTyped(), Policies: policyOptions(a.spoken(c))}
	if f.text("add") == "" { // nothing was asked yet
		v.Form.Values["add"] = "h100:8"
		return a.render(c, http.StatusOK, web.WhatIfPage(v))
	}
	in := f.whatIfInput()
	var answer pool.WhatIfView
	if err = f.err(nil); err == nil {
		answer, err = a.Pool.WhatIf(ctx, actor, in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			v.Form = v.Form.Refuse(err)
			return web.WhatIfPage(v), nil
		})
	}
	v.Done, v.Added, v.Days, v.Requests = true, answer.Added, answer.Days, answer.Jobs
	v.Assumed, v.AssumedAt = answer.Assumed, time.Duration(answer.Span)
	v.Now, v.Then = replayView(answer.Now), replayView(answer.Then)
	return a.render(c, http.StatusOK, web.WhatIfPage(v))
}

// policyOptions are the policies by name.
func policyOptions(ctx context.Context) []web.Option {
	list := []web.Option{{Label: web.T(ctx, "as the pool does by default")}}
	for _, name := range placement.Policies() {
		list = append(list, web.Option{Value: name, Label: name})
	}
	return list
}

func replayView(r history.Result) web.Replay {
	v := web.Replay{Machines: r.Machines, GPUs: r.GPUs, Placed: r.Placed, Waited: r.Waited, Refused: r.Refused, Median: time.Duration(r.Waits.Median),
		P90: time.Duration(r.Waits.P90), Max: time.Duration(r.Waits.Max), GPUHours: int64(r.CoreHours / placement.Whole), Held: heldPercent(r), From: r.From, To: r.To}
	for _, p := range r.Points {
		v.Points = append(v.Points, web.ReplayPoint{At: p.At, Capacity: int64(p.Capacity), Held: int64(p.Held), Waiting: int64(p.Waiting)})
	}
	return v
}

// heldPercent is how much of the capacity was held, on average.
func heldPercent(r history.Result) int64 {
	held, capacity := 0.0, 0.0
	for _, p := range r.Points {
		held, capacity = held+p.Held, capacity+p.Capacity
	}
	if capacity == 0 {
		return 0
	}
	return int64(100 * held / capacity)
}
