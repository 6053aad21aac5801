package handlers

import (
	"context"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/pool/providers"
	"weir/web"
)

func (a *App) devicesRoutes(p *echo.Group) {
	p.GET("/pool/devices/:id", a.page(a.devicePage))
	p.POST("/pool/devices/:id", a.submit(a.devicePage, a.updateDevicePage))
}

func (a *App) devicePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor, id := actorOf(ctx), number(c, "id")
	d, history, err := a.Pool.Device(ctx, actor, id)
	if err != nil {
		return nil, err
	}
	v := web.DeviceView{Device: deviceView(d, actor.User.ID), Facts: d.Device, Provider: d.ProviderName, ProviderID: d.ProviderID,
		State:    d.ProviderState,
		Measured: d.Measured, CanEdit: d.Manage, Form: submittedOr(c, sharingForm(d.Device)), History: shareRows(history)}
	if err := a.relatedDevices(ctx, &v); err != nil {
		return nil, err
	}
	err = a.measurements(ctx, &v, c.QueryParam("span"))
	return web.DevicePage(v), err
}

// relatedDevices adds the related devices: MIG instances or the parent GPU, and the peers
// over NVLink.
func (a *App) relatedDevices(ctx context.Context, v *web.DeviceView) error {
	actor := actorOf(ctx)
	provider, err := a.Pool.Provider(ctx, actor, v.ProviderID)
	if models.KindOf(err) == models.KindNotFound {
		return nil // it has left the pool
	}
	byUUID := map[string]models.Device{}
	drawn := devicesAt(provider, actor.User.ID)
	for i, d := range provider.Devices {
		byUUID[d.UUID] = d.Device
		switch {
		case d.ID == v.Device.ID:
			v.Device = drawn[i]
		case d.ParentID != nil && *d.ParentID == v.Device.ID:
			v.Instances = append(v.Instances, drawn[i])
		case v.Facts.ParentID != nil && d.ID == *v.Facts.ParentID:
			v.Parent = &web.Link{Label: drawn[i].Label, Href: path("pool", "devices", d.ID)}
		}
	}
	for _, uuid := range v.Facts.Peers {
		if d, known := byUUID[uuid]; known {
			v.Peers = append(v.Peers, web.Link{Label: deviceLabel(d), Href: path("pool", "devices", d.ID)})
		}
	}
	return err
}

// chartSlots is how many steps a chart has.
const chartSlots = 120

// measurements adds the measurements of a time span; the default is the last hour.
func (a *App) measurements(ctx context.Context, v *web.DeviceView, span string) error {
	if providers.Lengths[span] == 0 {
		span = providers.LastHour
	}
	buckets, err := a.Providers.History(ctx, actorOf(ctx), v.Facts.ID, span)
	v.Span, v.To = span, a.Store.Now()
	v.From = v.To.Add(-providers.Lengths[span])
	v.Slots = web.Slots(buckets, v.From, v.To, chartSlots)
	return err
}

func sharingForm(d models.Device) web.Form {
	f := formOf(d.Version)
	f.Values["sharing"] = d.Sharing
	for _, profile := range d.Layout {
		f.Values["layout"] += profile + "\n"
	}
	if d.Mixed {
		f.Values["mixed"] = "1"
	}
	return f
}

func shareRows(history []pool.ShareView) (rows []web.ShareRow) {
	for _, s := range history {
		row := web.ShareRow{Cores: s.Cores, MemoryMiB: s.MemoryMiB, Enforcement: s.Enforcement, From: s.From, Until: s.Until}
		if !s.Anonymous {
			row.Label, row.Href = s.ProjectName+" · "+s.UserName+" · "+s.Name, s.Kind.Path(s.ObjectID)
		}
		rows = append(rows, row)
	}
	return rows
}

func (f *form) deviceInput() providers.DeviceInput {
	return providers.DeviceInput{Sharing: f.text("sharing"), Layout: f.lines("layout"), Mixed: f.bool("mixed"), Version: f.version()}
}

func (a *App) updateDevicePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	id := number(c, "id")
	_, err := a.Providers.SetSharing(ctx, actorOf(ctx), id, f.deviceInput())
	return redirect{path("pool", "devices", id), models.Say("Device updated.")}, err
}
