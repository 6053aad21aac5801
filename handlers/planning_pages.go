package handlers

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/pool/placement"
	"weir/pool/placement/history"
	"weir/web"
)

func (a *App) planningRoutes(p *echo.Group) {
	p.GET("/pool/planning", a.planningPage)
}

// planningInput reads the input of a replay from a form.
func (f *form) planningInput() pool.PlanningInput {
	return pool.PlanningInput{Add: f.text("add"), Days: f.number("days"), Policy: f.text("policy")}
}

func (a *App) planningPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	policies, err := a.Pool.PlanningPolicies(actor)
	if err != nil {
		return err
	}
	f, err := readForm(c)
	if err != nil {
		return err
	}
	v := web.PlanningView{Form: f.asSubmitted(), Policies: web.Options(web.T(a.localized(c), "Pool default"), policies, "")}
	if f.text("add") == "" { // the empty form
		v.Form.Values["add"] = "h100:8"
		return a.render(c, http.StatusOK, web.PlanningPage(v))
	}
	in := f.planningInput()
	result, err := a.Pool.Planning(ctx, actor, in)
	if err = f.with(err); err != nil {
		v.Form = v.Form.Refuse(err)
		return a.refused(c, f, err, showing(web.PlanningPage(v)))
	}
	v.Done, v.Added, v.Days, v.Requests = true, result.Added, result.Days, result.Jobs
	v.Assumed, v.AssumedDuration = result.Assumed, time.Duration(result.Span)
	v.Now, v.Then = replayView(result.Now), replayView(result.Then)
	return a.render(c, http.StatusOK, web.PlanningPage(v))
}

func replayView(r history.Result) web.Replay {
	v := web.Replay{Machines: r.Machines, GPUs: r.GPUs, Placed: r.Placed, Waited: r.Waited, Refused: r.Refused,
		Median: time.Duration(r.Waits.Median), P90: time.Duration(r.Waits.P90), Max: time.Duration(r.Waits.Max),
		GPUHours: int64(r.CoreHours / placement.Whole), InUse: inUsePercent(r), From: r.From, To: r.To}
	v.Points = models.Map(r.Points, func(p history.Point) web.ReplayPoint {
		return web.ReplayPoint{At: p.At, Capacity: int64(p.Capacity), InUse: int64(p.InUse), Waiting: int64(p.Waiting)}
	})
	return v
}

// inUsePercent is the average share of the capacity in use.
func inUsePercent(r history.Result) int64 {
	return int64(100 * r.MeanInUse() / max(float64(r.CapacityCores), 1))
}
