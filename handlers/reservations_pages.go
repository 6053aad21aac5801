package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/pool/broker"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) reservationsRoutes(p *echo.Group) {
	p.GET("/reservations", a.page(a.reservationsPage))
	p.GET("/reservations/calendar", a.page(a.calendarPage))
	p.GET("/reservations/new", a.page(a.newReservationPage))
	p.POST("/reservations", a.submit(a.newReservationPage, a.createReservationPage))
	p.GET("/reservations/:id", a.page(a.reservationPage))
	p.GET("/reservations/:id/change", a.page(a.changeReservationFormPage))
	p.POST("/reservations/:id/change", a.submit(a.changeReservationFormPage, a.changeReservationPage))
	p.GET("/reservations/:id/cancel", a.page(a.confirmCancelReservationPage))
	p.POST("/reservations/:id/cancel", a.submit(a.confirmCancelReservationPage, a.cancelReservationPage))
}

func reservationRow(ctx context.Context, v broker.View) web.ReservationRow {
	return web.ReservationRow{ReservationView: v.ReservationView, Grants: v.Grants, ExpiresAt: v.ExpiresAt, CanCancel: v.CanCancel,
		CanChange: v.CanChange, UsedMS: v.UsedMS, UnusedMS: v.UnusedMS,
		CanLaunch: v.State == models.ReservationActive && v.UserID == actorOf(ctx).User.ID}
}

func (a *App) reservationsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	actor := actorOf(ctx)
	v := web.ReservationsView{State: cmp.Or(c.QueryParam("state"), "live"),
		Feed: fmt.Sprintf("%s%s?user_id=%d", a.portalURL(c.Request()), feedPath, actor.User.ID)}
	list, err := a.Broker.List(ctx, actor, store.ReservationFilter{States: reservationStates(v.State)}, pageAfter(c))
	v.Rows = models.Map(list, func(r broker.View) web.ReservationRow { return reservationRow(ctx, r) })
	v.Next = nextPage(c, list, func(r broker.View) int64 { return r.ID })
	return web.ReservationsPage(v), err
}

func (a *App) reservationPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v, err := a.Broker.View(ctx, actorOf(ctx), number(c, "id"))
	return web.ReservationPage(reservationRow(ctx, v)), err
}

func (a *App) confirmCancelReservationPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v, err := a.Broker.View(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmCancelReservation(reservationRow(ctx, v))), err
}

func (a *App) cancelReservationPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	id := number(c, "id")
	return redirect{path("reservations", id), models.Say("Reservation canceled.")}, a.Broker.Cancel(ctx, actorOf(ctx), id)
}

// reservationInput reads a request for a reservation.
func (f *form) reservationInput() broker.ReservationInput {
	zone := f.timeZone()
	in := broker.ReservationInput{ProjectID: f.number("project_id"), GPUs: f.number("gpus"), Cores: f.number("cores"),
		GPUMemoryMiB: f.number("gpu_memory_mib"), GPUModel: f.text("gpu_model"),
		DurationMinutes: f.number("duration_minutes"), From: f.localTime("from", zone), Until: f.localTime("until", zone),
		AcceptPart: f.bool("accept_part"), AcceptLater: f.bool("accept_later"), ClientZone: f.text("client_zone")}
	in.Class, in.QoS = models.PriorityClass(f.text("class")), models.QoS(f.text("qos"))
	in.TaskType = models.TaskType(f.text("task_type"))
	return in
}

// reservationChange reads a change of a reservation of a version.
func (f *form) reservationChange() broker.ReservationChange {
	zone := f.timeZone()
	return broker.ReservationChange{StartsAt: f.localTime("starts_at", zone), EndsAt: f.localTime("ends_at", zone),
		Version: f.number("version")}
}

// timeZone is the one that the browser has told.
func (f *form) timeZone() *time.Location {
	if zone, err := time.LoadLocation(f.text("time_zone")); err == nil {
		return zone
	}
	return time.UTC
}

// localTime reads a date and time in a time zone; nil if it is empty.
func (f *form) localTime(name string, zone *time.Location) *time.Time {
	text := f.text(name)
	if text == "" {
		return nil
	}
	t, err := time.ParseInLocation("2006-01-02T15:04", text, zone)
	if err != nil {
		f.problems.Add(name, "must be a date and time such as %s", "2026-03-12T09:00")
		return nil
	}
	return &t
}

// calendarPage shows what a project can reserve, or has reserved; of the first project in which the
// actor can reserve, or else that they see, unless another one is chosen.
func (a *App) calendarPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project, _ := strconv.ParseInt(c.QueryParam("project_id"), 10, 64)
	after, _ := strconv.ParseInt(c.QueryParam("after"), 10, 64)
	list, err := a.Workspaces.Launchable(ctx, actorOf(ctx))
	may := models.Map(list, func(p models.Project) int64 { return p.ID })
	if err == nil && len(list) == 0 {
		var seen []projects.ProjectView
		seen, err = a.Projects.ListProjects(ctx, actorOf(ctx), projects.ProjectQuery{}, store.Page{Limit: store.PageSize})
		list = models.Map(seen, func(p projects.ProjectView) models.Project { return p.Project })
	}
	if err != nil || project == 0 && len(list) == 0 {
		return web.CalendarPage(web.CalendarView{}), err
	}
	if project == 0 {
		project = list[0].ID
	}
	in := CalendarQuery{project, cmp.Or(c.QueryParam("view"), broker.ViewWeek), c.QueryParam("date"),
		cmp.Or(c.QueryParam("time_zone"), actorOf(ctx).User.TimeZone), c.QueryParam("gpu_model"), c.QueryParam("reserved"), after}
	calendar, err := a.Broker.Calendar(ctx, actorOf(ctx), in.input())
	v := web.CalendarView{ProjectID: project, CanReserve: slices.Contains(may, project), Projects: projectOptions(list), View: in.View,
		TimeZone: in.TimeZone, GPUModel: in.GPUModel, Reserved: in.Reserved, Slots: calendar.Slots, Now: a.Store.Now()}
	v.Devices = models.Map(calendar.Devices, func(d broker.CalendarDevice) web.CalendarDevice {
		return web.CalendarDevice(d)
	})
	if calendar.More {
		v.After = v.Devices[len(v.Devices)-1].DeviceID
	}
	return web.CalendarPage(v), err
}

func projectOptions(list []models.Project) []web.Option {
	return models.Map(list, func(p models.Project) web.Option {
		return web.Option{Value: strconv.FormatInt(p.ID, 10), Label: p.Name}
	})
}

// newReservationPage is the form of a reservation, with what would be decided once it is
// filled in.
func (a *App) newReservationPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	v := web.ReservationFormView{Form: formOf(0)}
	v.Form.Values = map[string]string{"project_id": "", "gpus": "1", "cores": "100", "gpu_memory_mib": "", "gpu_model": "",
		"duration_minutes": "60", "from": "", "until": "", "time_zone": ""}
	for name := range v.Form.Values {
		v.Form.Values[name] = cmp.Or(c.QueryParam(name), v.Form.Values[name])
	}
	v.Form = submittedOr(c, v.Form)
	list, err := a.Workspaces.Launchable(ctx, actorOf(ctx))
	if err != nil || len(list) == 0 {
		return web.ReservationFormPage(v), err
	}
	v.Projects, v.Zones = projectOptions(list), a.Broker.ClientZones()
	if v.Form.Value("project_id") == "" {
		v.Form.Values["project_id"] = v.Projects[0].Value
	}
	f := formFrom(v.Form)
	in := f.reservationInput()
	v.Decision, err = reservationDecision(f.err(), func() (broker.Decision, error) { return a.Broker.Preview(ctx, actorOf(ctx), in) })
	return web.ReservationFormPage(v), err
}

// changeReservationFormPage is the form that changes a reservation, with what would be
// decided.
func (a *App) changeReservationFormPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	r, err := a.Broker.View(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.ReservationChangeView{Reservation: reservationRow(ctx, r), Form: submittedOr(c, formOf(r.Version))}
	if f := formFrom(v.Form); f.text("starts_at") != "" || f.text("ends_at") != "" {
		in := f.reservationChange()
		v.Decision, err = reservationDecision(f.err(),
			func() (broker.Decision, error) { return a.Broker.PreviewChange(ctx, actorOf(ctx), r.ID, in) })
	}
	return web.ReservationChangePage(v), err
}

func (a *App) changeReservationPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	id, in := number(c, "id"), f.reservationChange()
	if err := f.err(); err != nil {
		if in.StartsAt != nil || in.EndsAt != nil {
			_, err = a.Broker.PreviewChange(ctx, actorOf(ctx), id, in)
		}
		return redirect{}, f.errWith(err)
	}
	return redirect{path("reservations", id), models.Say("Reservation changed.")}, a.Broker.Change(ctx, actorOf(ctx), id, in)
}

// reservationDecision is what a preview decides on a form, unless the form has an error.
func reservationDecision(err error, preview func() (broker.Decision, error)) (*web.ReservationDecision, error) {
	var d broker.Decision
	if err == nil {
		d, err = preview()
	}
	v := &web.ReservationDecision{Outcome: d.Outcome.String(), Grants: d.Grants, Explanation: d.Explanation,
		Earliest: d.Earliest, Latest: d.Latest, Moves: len(d.Moves), Conflicts: d.Conflicts}
	for _, m := range d.Shown {
		r, first := m.Before, m.Grants[0]
		v.Changes = append(v.Changes, web.ReservationMove{ID: r.ID, Project: m.Project, From: r.StartsAt, Until: r.EndsAt, Cores: r.Cores,
			NewFrom: first.StartsAt, NewUntil: first.EndsAt, NewCores: first.Cores})
	}
	v.Score, v.Parts = d.Score()
	var e *models.Error
	if err != nil && (!errors.As(err, &e) || e.Kind == models.KindInternal) {
		return nil, err
	}
	if e != nil {
		v.Grants, v.Explanation, v.Earliest, v.Latest, v.Parts, v.Moves, v.Changes, v.Conflicts = nil, models.Text{}, nil, nil, nil, 0, nil, nil
		for _, field := range e.Fields {
			v.Reasons = append(v.Reasons, field.Reason)
		}
		if len(e.Fields) == 0 {
			v.Reasons = []models.Text{e.Message}
		}
	}
	return v, nil
}

func (a *App) createReservationPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := f.reservationInput()
	if f.err() != nil {
		_, err := a.Broker.Preview(ctx, actorOf(ctx), in) // which reserves nothing
		return redirect{}, f.errWith(err)
	}
	r, err := a.Broker.Reserve(ctx, actorOf(ctx), in)
	return redirect{path("reservations", r.ID), models.Say("Reserved.")}, err
}
