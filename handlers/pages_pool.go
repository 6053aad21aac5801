package handlers

import (
	"net/http"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/web"
)

func (a *App) poolPage(c echo.Context) error {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	view, err := a.Pool.View(ctx, actor)
	if err != nil {
		return err
	}
	var v web.PoolView
	for _, p := range view.Providers {
		row := web.Provider{ID: p.ID, Name: p.Name, State: p.State, SeenAt: p.SeenAt}
		for _, d := range p.Devices {
			row.Devices = append(row.Devices, deviceView(d, actor.User.ID))
		}
		row.Simulated = anySimulated(row.Devices)
		v.Providers = append(v.Providers, row)
	}
	for _, w := range view.Waiting {
		v.Queue = append(v.Queue, queueRow(w))
	}
	for _, d := range view.Decisions {
		v.Decisions = append(v.Decisions, web.DecisionRow{ID: d.ID, At: d.At, Who: d.UserName, Outcome: d.Outcome, Demand: d.Demand, Explanation: d.Explanation})
	}
	return a.render(c, http.StatusOK, web.PoolPage(v))
}

func queueRow(w pool.WaitingView) web.QueueRow {
	row := web.QueueRow{Place: w.Place, WorkspaceID: w.ID, Anonymous: w.Anonymous, GPUs: w.Demand.GPUs, Cores: w.Demand.Cores,
		Why: w.Reason, Since: w.RequestedAt}
	if !w.Anonymous {
		row.Label, row.Href = w.ProjectName+" · "+w.UserName+" · "+w.Name, path("workspaces", w.ID)
	}
	return row
}

func (a *App) devicePage(c echo.Context) error {
	page, err := a.deviceForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

// deviceForm is a device's page; f is the form that came back, if one did.
func (a *App) deviceForm(c echo.Context, f *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	d, history, err := a.Pool.Device(ctx, actor, number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.DeviceView{Device: deviceView(d, actor.User.ID), Facts: d.Device, Provider: d.ProviderName, State: models.ProviderOnline,
		CanEdit: a.Access.May(actor, 0, "device", "write"), Form: formOf(d.Version)}
	if !d.Present {
		v.State = models.ProviderOffline
	}
	for name, on := range map[string]bool{"exclusive": d.Exclusive, "mixed": d.Mixed} {
		if on {
			v.Form.Values[name] = "1"
		}
	}
	for _, s := range history {
		row := web.ShareRow{Cores: s.Cores, MemoryMiB: s.MemoryMiB, Enforcement: s.Enforcement, From: s.From, Until: s.Until}
		if !s.Anonymous {
			row.Label, row.Href = s.ProjectName+" · "+s.UserName+" · "+s.WorkspaceName, path("workspaces", s.WorkspaceID)
		}
		v.History = append(v.History, row)
	}
	if f != nil {
		v.Form = *f
	}
	return web.DevicePage(v), nil
}

func (a *App) updateDevice(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	id := number(c, "id")
	_, err = a.Pool.UpdateDevice(ctx, actorOf(ctx), id, pool.DeviceInput{Exclusive: f.bool("exclusive"), Mixed: f.bool("mixed"), Version: f.version()})
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.web().Refuse(err)
			return a.deviceForm(c, &w)
		})
	}
	a.Wake()
	return a.done(c, path("pool", "devices", id), models.Say("The device has been changed."))
}
