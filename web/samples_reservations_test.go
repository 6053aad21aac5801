package web

import (
	"time"

	"weir/models"
)

var sampleScore = models.ScoreParts{{Name: "class", Factor: 0.5, Points: 0.111}, {Name: "qos", Factor: 0.667, Points: 0.037}, {Name: "task", Factor: 0.333, Points: 0.019},
	{Name: "client", Factor: 0.5, Points: 0.028}, {Name: "fair_share", Factor: 1, Points: 0.056}, {Name: "attendance", Factor: 1, Points: 0.056}, {Name: "waiting"}}

func sampleReservation(state models.ReservationState) ReservationRow {
	starts, ends := now.Add(time.Hour), now.Add(5*time.Hour)
	r := ReservationRow{CanCancel: !state.Ended(), CanChange: !state.Ended(), CanLaunch: state == models.ReservationActive,
		ReservationView: models.ReservationView{ProjectName: "vision", UserName: "Li", Reservation: models.Reservation{ID: 3, ProjectID: 1, UserID: li.ID, State: state,
			Outcome: "partial", GPUs: 2, Cores: 50, GPUMemoryMiB: 40 << 10, GPUModel: "H100", DurationMinutes: 120, StartsAt: starts, EndsAt: ends,
			Class: models.ClassNormal, QoS: models.QoSStandard, TaskType: models.TaskTraining, MovedAt: ptr(now), Score: 0.31, ScoreParts: sampleScore}}}
	if state == models.ReservationGranted {
		r.ExpiresAt = ptr(starts.Add(15 * time.Minute))
	}
	if state.Ended() {
		r.UsedMS, r.UnusedMS = 72_000_000, 144_000_000
	}
	if state == models.ReservationCanceled {
		r.Reason = models.Say("Canceled by %s.", "Li")
	}
	for i := range int64(2) {
		r.Grants = append(r.Grants, models.GrantView{ProviderName: "gpu-node-01", Number: i, Model: "NVIDIA H100 80GB HBM3", Simulated: i == 1,
			ReservationGrant: models.ReservationGrant{ID: i, ReservationID: 3, DeviceID: i + 1, Cores: 50, MemoryMiB: 40 << 10, StartsAt: starts, EndsAt: ends}})
	}
	return r
}

func sampleCalendar(view string, projects []Option) CalendarView {
	v := CalendarView{ProjectID: 1, CanReserve: true, Projects: projects, View: view, TimeZone: "Asia/Shanghai", GPUModel: "H100", After: 2, Now: now}
	n, step := 24, time.Hour
	switch view {
	case "week":
		n, step = 28, 6*time.Hour
	case "month":
		n, step = 31, 24*time.Hour
	}
	for i := range n + 1 {
		v.Slots = append(v.Slots, now.Truncate(24*time.Hour).Add(time.Duration(i)*step))
	}
	for i, g := range sampleReservation(models.ReservationGranted).Grants {
		d := CalendarDevice{GrantView: g}
		d.Cores = 100
		for k := range n {
			d.Available = append(d.Available, []int64{-1, 0, 20, 50, 80, 100, 100}[min(6, (k+3*i)%9)])
		}
		v.Devices = append(v.Devices, d)
	}
	return v
}

func reservationSamples() []sample {
	rows := []ReservationRow{sampleReservation(models.ReservationGranted), sampleReservation(models.ReservationActive), sampleReservation(models.ReservationExpired)}
	asked := Form{Values: map[string]string{"project_id": "1", "gpus": "2", "cores": "50", "duration_minutes": "120", "accept_part": "1"}}
	projects := []Option{{Value: "1", Label: "vision"}}
	decided := func(outcome string, d ReservationDecision) *ReservationDecision {
		d.Outcome = outcome
		return &d
	}
	list := []sample{
		{"reservations", "/reservations", &li, ReservationsPage(ReservationsView{Rows: rows, State: "all", Next: "/reservations?cursor=2"})},
		{"reservations-none", "/reservations", &li, ReservationsPage(ReservationsView{State: "live"})},
		{"reservation-cancel", "/reservations/3/cancel", &li, ConfirmPage(ConfirmCancelReservation(rows[1]))},
		{"reservation-change", "/reservations/3/change", &li, ReservationChangePage(ReservationChangeView{Reservation: rows[0], Form: Form{Version: 2}})},
		{"reservation-extend", "/reservations/3/change", &li, ReservationChangePage(ReservationChangeView{Reservation: rows[1], Form: Form{Version: 2, Values: map[string]string{"ends_at": "2026-03-12T09:00"}},
			Decision: decided("refused", ReservationDecision{Latest: ptr(now.Add(6 * time.Hour))})})},
		{"reserve-none", "/reservations/new", &li, ReservationFormPage(ReservationFormView{})},
		{"reserve-refused", "/reservations/new", &li, ReservationFormPage(ReservationFormView{Projects: projects,
			Form: asked.Refuse(models.Invalid("from", "must be a date and time such as %s", "2026-03-12T09:00"))})},
	}
	for _, state := range []models.ReservationState{models.ReservationGranted, models.ReservationActive, models.ReservationDone, models.ReservationCanceled, models.ReservationExpired} {
		list = append(list, sample{"reservation-" + string(state), "/reservations/3", &li, ReservationPage(sampleReservation(state))})
	}
	for _, view := range []string{"day", "week", "month"} {
		list = append(list, sample{"calendar-" + view, "/reservations/calendar?view=" + view, &li, CalendarPage(sampleCalendar(view, projects))})
	}
	mine, none := sampleCalendar("day", projects), sampleCalendar("day", projects)
	for i := range mine.Devices {
		d := &mine.Devices[i]
		d.Available, d.Reserved, d.Reservations = nil, make([]int64, 24), make([]int64, 24)
		d.Reserved[5], d.Reservations[5] = 50, 3
	}
	mine.Reserved, none.Reserved, none.Devices = "mine", "project", nil
	list = append(list, sample{"calendar-mine", "/reservations/calendar?reserved=mine", &li, CalendarPage(mine)},
		sample{"calendar-unreserved", "/reservations/calendar?reserved=project", &li, CalendarPage(none)})
	list = append(list, sample{"calendar-none", "/reservations/calendar", &li, CalendarPage(CalendarView{})},
		sample{"calendar-no-gpus", "/reservations/calendar", &root, CalendarPage(CalendarView{ProjectID: 1, View: "month", Slots: sampleCalendar("month", nil).Slots})})
	for name, d := range map[string]*ReservationDecision{
		"granted": decided("granted", ReservationDecision{Grants: rows[0].Grants, Score: 0.31, Parts: sampleScore, Moves: 4,
			Changes: []ReservationMove{{ID: 7, Project: "vision", From: now, Until: later, Cores: 100, NewFrom: later, NewUntil: later.Add(time.Hour), NewCores: 50}}}), "partial": decided("partial", ReservationDecision{Grants: rows[0].Grants}),
		"delayed": decided("delayed", ReservationDecision{Grants: rows[0].Grants}), "later": decided("refused", ReservationDecision{Earliest: &later, Conflicts: []models.ReservationView{rows[0].ReservationView,
			{Reservation: models.Reservation{GPUs: 1, Cores: 50, StartsAt: now, EndsAt: later}}}}),
		"never": decided("refused", ReservationDecision{}), "forbidden": decided("", ReservationDecision{Reasons: []models.Text{models.Say("You are not a member of this project and have no resources in it.")}}),
	} {
		list = append(list, sample{"reserve-" + name, "/reservations/new", &li, ReservationFormPage(ReservationFormView{Projects: projects, Form: asked, Decision: d})})
	}
	return list
}
