package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/broker"
)

func (a rest) reservationsOperations(s section) {
	register(a, s, route{http.MethodGet, "/reservations", 200, "list-reservations", models.Say("List reservations, newest first")},
		a.listReservations)
	a.feedOperation(s)
	register(a, s, route{http.MethodPost, "/reservations/preview", 200, "preview-reservation",
		models.Say("Preview the decision on a reservation")}, a.previewReservation, http.StatusNotFound)
	register(a, s, route{http.MethodPost, "/reservations", 201, "create-reservation",
		models.Say("Reserve GPUs for a time; part of them or a later time only if you accept that")}, a.createReservation, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/reservations/calendar", 200, "get-reservation-calendar",
		models.Say("Get what a project can reserve, or has reserved, in a day, week or month")}, a.getCalendar, http.StatusNotFound)
	register(a, s, route{http.MethodGet, "/reservations/{id}", 200, "get-reservation", models.Say("Get a reservation")}, a.getReservation)
	register(a, s, route{http.MethodPatch, "/reservations/{id}", 200, "change-reservation",
		models.Say("Move, extend or shorten your reservation")}, a.changeReservation)
	register(a, s, route{http.MethodPost, "/reservations/{id}/preview", 200, "preview-reservation-change",
		models.Say("Preview the decision on a change of your reservation")}, a.previewReservationChange)
	register(a, s, route{http.MethodPost, "/reservations/{id}/cancel", 200, "cancel-reservation",
		models.Say("Cancel a reservation; workspaces in it are stopped")}, a.cancelReservation)
}

// Reservation is GPU shares that are reserved for a time.
type Reservation struct {
	ID              int64                   `json:"id"`
	ProjectID       int64                   `json:"project_id"`
	Project         string                  `json:"project"`
	UserID          int64                   `json:"user_id"`
	User            string                  `json:"user"`
	State           models.ReservationState `json:"state" enum:"granted,active,done,canceled,expired"`
	Reason          string                  `json:"reason,omitempty" doc:"reason for which it ended"`
	Outcome         string                  `json:"outcome" enum:"granted,partial,delayed" doc:"the decision: all at the earliest start, a part and the rest later, or all later"`
	GPUs            int64                   `json:"gpus" doc:"number of GPUs, all of one machine"`
	Cores           int64                   `json:"cores" doc:"GPU cores per GPU"`
	GPUMemoryMiB    int64                   `json:"gpu_memory_mib" doc:"GPU memory per GPU, MiB"`
	GPUModel        string                  `json:"gpu_model,omitempty"`
	DurationMinutes int64                   `json:"duration_minutes" doc:"duration"`
	StartsAt        time.Time               `json:"starts_at" doc:"start of the first share"`
	EndsAt          time.Time               `json:"ends_at" doc:"end of the last share"`
	Grants          []ReservationGrant      `json:"grants" doc:"reserved shares, by start"`
	Explanation     string                  `json:"explanation,omitempty" doc:"by which objectives its GPUs were chosen"`
	ClientZone      string                  `json:"client_zone,omitempty" doc:"client zone near which machines are preferred; absent: none"`
	Class           models.PriorityClass    `json:"class" enum:"high,normal,low" doc:"priority class"`
	QoS             models.QoS              `json:"qos" enum:"guaranteed,standard,best_effort,preemptible" doc:"QoS level"`
	TaskType        models.TaskType         `json:"task_type" enum:"interactive,inference,training,batch" doc:"task type"`
	Score           float64                 `json:"score" doc:"score of the request when it was decided, from 0 to 1"`
	ScoreParts      []models.ScorePart      `json:"score_parts" doc:"parts of the score"`
	MovedAt         *time.Time              `json:"moved_at,omitempty" doc:"last change for a request with a higher score"`
	CreatedAt       time.Time               `json:"created_at"`
	ExpiresAt       *time.Time              `json:"expires_at,omitempty" doc:"time at which the reservation expires if it is not used; absent once it was used or has ended"`
	UsedAt          *time.Time              `json:"used_at,omitempty" doc:"time of the first use"`
	EndedAt         *time.Time              `json:"ended_at,omitempty"`
	UsedMS          int64                   `json:"used_gpu_core_milliseconds" doc:"of what was reserved until now, what workspaces have used"`
	UnusedMS        int64                   `json:"unused_gpu_core_milliseconds" doc:"of what was reserved until now, what nothing has used"`
	MayCancel       bool                    `json:"may_cancel" doc:"you can cancel the reservation"`
	MayChange       bool                    `json:"may_change" doc:"you can change the reservation"`
}

// ReservationGrant is a share of a device for a span of time.
type ReservationGrant struct {
	DeviceID  int64     `json:"device_id"`
	Provider  string    `json:"provider"`
	Number    int64     `json:"number" doc:"device index on the machine, from 0"`
	Model     string    `json:"model"`
	Cores     int64     `json:"cores" doc:"GPU cores"`
	MemoryMiB int64     `json:"memory_mib"`
	Simulated bool      `json:"simulated" doc:"simulated device"`
	StartsAt  time.Time `json:"starts_at" doc:"start"`
	EndsAt    time.Time `json:"ends_at"`
}

func reservationGrant(g models.GrantView) ReservationGrant {
	return ReservationGrant{DeviceID: g.DeviceID, Provider: g.ProviderName, Number: g.Number, Model: g.Model, Cores: g.Cores,
		MemoryMiB: g.MemoryMiB,
		Simulated: g.Simulated, StartsAt: g.StartsAt.UTC(), EndsAt: g.EndsAt.UTC()}
}

func reservationOf(v broker.View) Reservation {
	return Reservation{ID: v.ID, ProjectID: v.ProjectID, Project: v.ProjectName, UserID: v.UserID, User: v.UserName, State: v.State,
		Reason:  v.Reason.String(),
		Outcome: v.Outcome, GPUs: v.GPUs, Cores: v.Cores, GPUMemoryMiB: v.GPUMemoryMiB, GPUModel: v.GPUModel, DurationMinutes: v.DurationMinutes,
		StartsAt: v.StartsAt.UTC(), EndsAt: v.EndsAt.UTC(), Grants: models.Map(v.Grants, reservationGrant), Explanation: v.Explanation.String(),
		ClientZone: v.ClientZone,
		CreatedAt:  v.CreatedAt.UTC(),
		Class:      v.Class, QoS: v.QoS, TaskType: v.TaskType, Score: v.Score, ScoreParts: scoreParts(v.ScoreParts), MovedAt: utc(v.MovedAt),
		ExpiresAt: utc(v.ExpiresAt), UsedAt: utc(v.UsedAt), EndedAt: utc(v.EndedAt), UsedMS: v.UsedMS, UnusedMS: v.UnusedMS,
		MayCancel: v.CanCancel, MayChange: v.CanChange}
}

// ReservationsQuery narrows a list of reservations.
type ReservationsQuery struct {
	Paging
	State     string `query:"state" enum:"live,ended,all" default:"live" doc:"live: granted or active; ended: done, canceled or expired"`
	ProjectID int64  `query:"project_id" minimum:"1" doc:"project ID"`
	UserID    int64  `query:"user_id" minimum:"1" doc:"user ID of the owner"`
}

func (q ReservationsQuery) filter() store.ReservationFilter {
	return store.ReservationFilter{ProjectID: q.ProjectID, UserID: q.UserID, States: reservationStates(q.State)}
}

// reservationStates are the states that a list named live, ended or all shows.
func reservationStates(list string) []models.ReservationState {
	switch list {
	case "live":
		return models.LiveReservations
	case "ended":
		return []models.ReservationState{models.ReservationDone, models.ReservationCanceled, models.ReservationExpired}
	default:
		return nil
	}
}

func (a rest) listReservations(ctx context.Context, in *ReservationsQuery) (*Response[List[Reservation]], error) {
	return listed(in.Paging, func(v broker.View) int64 { return v.ID }, func(p store.Page) ([]broker.View, error) {
		return a.Broker.List(ctx, actorOf(ctx), in.filter(), p)
	}, reservationOf)
}

func (a rest) getReservation(ctx context.Context, in *ByID) (*Found[Reservation], error) {
	v, err := a.Broker.View(ctx, actorOf(ctx), in.ID)
	return found(v.Version, reservationOf(v), err)
}

// ReservationDecision is the decision on a request for a reservation.
type ReservationDecision struct {
	Outcome      string             `json:"outcome" enum:"granted,partial,delayed,refused"`
	GPUMemoryMiB int64              `json:"gpu_memory_mib" doc:"GPU memory per GPU, MiB"`
	Grants       []ReservationGrant `json:"grants" doc:"what would be reserved, by start"`
	Explanation  string             `json:"explanation,omitempty" doc:"by which objectives the GPUs are chosen; absent if none are"`
	Earliest     *time.Time         `json:"earliest,omitempty" doc:"when a refused request could begin; absent if the pool cannot meet it as far ahead as it is known"`
	Latest       *time.Time         `json:"latest,omitempty" doc:"until when a reservation could be extended, if its extension is refused"`
	Score        float64            `json:"score" doc:"score of the request, from 0 to 1; 0 for a change of a reservation"`
	ScoreParts   []models.ScorePart `json:"score_parts" doc:"parts of the score; none for a change of a reservation"`
	Moves        int                `json:"moves" doc:"number of reservations with lower scores that would be changed"`
	Changes      []ReservationMove  `json:"changes" doc:"those of them that you may see"`
	// Conflicts explain why the request cannot begin when it was asked for.
	Conflicts []ReservationConflict `json:"conflicts" doc:"reservations on the GPUs that the request cannot have from its earliest start, or after the end of one that has begun, at most 5"`
}

// ReservationConflict is a reservation in the way of a request.
type ReservationConflict struct {
	ID        int64  `json:"id,omitempty" doc:"absent: you may not see the reservation"`
	ProjectID int64  `json:"project_id,omitempty" doc:"project ID; absent: you may not see the reservation"`
	Project   string `json:"project,omitempty" doc:"name of the project"`
	User      string `json:"user,omitempty" doc:"name of its owner"`
	GPUs      int64  `json:"gpus" doc:"number of GPUs"`
	ReservationSpan
}

func reservationConflict(r models.ReservationView) ReservationConflict {
	return ReservationConflict{r.ID, r.ProjectID, r.ProjectName, r.UserName, r.GPUs,
		ReservationSpan{r.StartsAt.UTC(), r.EndsAt.UTC(), r.Cores}}
}

// ReservationMove is what a request would change of a reservation with a lower score.
type ReservationMove struct {
	ID        int64           `json:"id"`
	ProjectID int64           `json:"project_id"`
	Project   string          `json:"project" doc:"name of the project"`
	Before    ReservationSpan `json:"before"`
	After     ReservationSpan `json:"after"`
}

// ReservationSpan is what a reservation has, and when.
type ReservationSpan struct {
	StartsAt time.Time `json:"starts_at" doc:"start"`
	EndsAt   time.Time `json:"ends_at"`
	Cores    int64     `json:"cores" doc:"GPU cores per GPU"`
}

func reservationMove(m broker.Move) ReservationMove {
	r, first := m.Before, m.Grants[0]
	return ReservationMove{r.ID, r.ProjectID, m.Project, ReservationSpan{r.StartsAt.UTC(), r.EndsAt.UTC(), r.Cores},
		ReservationSpan{first.StartsAt.UTC(), first.EndsAt.UTC(), first.Cores}}
}

// scoreParts are the parts of a score, as a list even if there are none.
func scoreParts(p models.ScoreParts) []models.ScorePart {
	return append([]models.ScorePart{}, p...)
}

func reservationDecisionOf(d broker.Decision) ReservationDecision {
	score, parts := d.Score()
	return ReservationDecision{d.Outcome.String(), d.Demand.GPUMemoryMiB, models.Map(d.Grants, reservationGrant), d.Explanation.String(),
		utc(d.Earliest), utc(d.Latest), score, scoreParts(parts), len(d.Moves), models.Map(d.Shown, reservationMove),
		models.Map(d.Conflicts, reservationConflict)}
}

func (a rest) previewReservation(ctx context.Context, in *Create[broker.ReservationInput]) (*Response[ReservationDecision], error) {
	d, err := a.Broker.Preview(ctx, actorOf(ctx), in.Body)
	return &Response[ReservationDecision]{reservationDecisionOf(d)}, err
}

func (a rest) previewReservationChange(ctx context.Context, in *CreateIn[broker.ReservationChange]) (
	*Response[ReservationDecision], error) {
	d, err := a.Broker.PreviewChange(ctx, actorOf(ctx), in.ID, in.Body)
	return &Response[ReservationDecision]{reservationDecisionOf(d)}, err
}

func (a rest) changeReservation(ctx context.Context, in *Update[broker.ReservationChange]) (*Found[Reservation], error) {
	in.Body.Version = in.version
	if err := a.Broker.Change(ctx, actorOf(ctx), in.ID, in.Body); err != nil {
		return nil, err
	}
	return a.getReservation(ctx, &in.ByID)
}

func (a rest) createReservation(ctx context.Context, in *Create[broker.ReservationInput]) (*Created[Reservation], error) {
	r, err := a.Broker.Reserve(ctx, actorOf(ctx), in.Body)
	if err != nil {
		return nil, err
	}
	v, err := a.getReservation(ctx, &ByID{r.ID})
	if err != nil {
		return nil, err
	}
	return &Created[Reservation]{ETag: v.ETag, Location: apiPrefix + path("reservations", r.ID), Body: v.Body}, nil
}

func (a rest) cancelReservation(ctx context.Context, in *ByID) (*Found[Reservation], error) {
	if err := a.Broker.Cancel(ctx, actorOf(ctx), in.ID); err != nil {
		return nil, err
	}
	return a.getReservation(ctx, in)
}

// CalendarQuery selects a part of the calendar.
type CalendarQuery struct {
	ProjectID int64  `query:"project_id" minimum:"1" required:"true" doc:"project ID"`
	View      string `query:"view" enum:"day,week,month" default:"week" doc:"day: in hours; week: in quarters of days; month: in days"`
	Date      string `query:"date" doc:"day in it; default today" example:"2027-01-31"`
	TimeZone  string `query:"time_zone" doc:"time zone of the days; default UTC" example:"Europe/Berlin"`
	GPUModel  string `query:"gpu_model" maxLength:"100" doc:"GPU model; empty: any"`
	Reserved  string `query:"reserved" enum:"project,mine" doc:"what is reserved, instead of what is available: by the project as far as you may see it, or by you; what has ended is left out"`
	After     int64  `query:"after" minimum:"0" doc:"ID of the last device of the page before"`
}

// calendarDevices is how many devices a page of the calendar has.
const calendarDevices = 50

func (q CalendarQuery) input() broker.CalendarInput {
	return broker.CalendarInput{ProjectID: q.ProjectID, View: q.View, Date: q.Date, TimeZone: q.TimeZone, GPUModel: q.GPUModel,
		Reserved: q.Reserved, After: q.After, Limit: calendarDevices}
}

// ReservationCalendar is what a project can reserve, or has reserved, in a day, week or month.
type ReservationCalendar struct {
	Starts  []time.Time      `json:"starts" doc:"starts of the slots"`
	EndsAt  time.Time        `json:"ends_at" doc:"end of the last slot"`
	Devices []CalendarDevice `json:"devices" doc:"devices, at most 50"`
	Next    int64            `json:"next,omitempty" doc:"value of after for the next page; absent on the last one"`
}

// CalendarDevice is a device of the calendar.
type CalendarDevice struct {
	DeviceID  int64   `json:"device_id"`
	Provider  string  `json:"provider"`
	Number    int64   `json:"number" doc:"device index on the machine, from 0"`
	Model     string  `json:"model"`
	Simulated bool    `json:"simulated" doc:"simulated device"`
	Cores     int64   `json:"cores" doc:"GPU cores of the device"`
	Available []int64 `json:"available,omitempty" doc:"GPU cores that are available during each whole slot; -1: it is over, or too far ahead; absent if reserved is asked for"`
	// Of what is reserved, if that is asked for.
	Reserved     []int64 `json:"reserved,omitempty" doc:"GPU cores that are reserved in each slot at most; present if reserved is asked for"`
	Reservations []int64 `json:"reservations,omitempty" doc:"ID of the first reservation in each slot, 0 without; present if reserved is asked for"`
}

func (a rest) getCalendar(ctx context.Context, in *CalendarQuery) (*Response[ReservationCalendar], error) {
	c, err := a.Broker.Calendar(ctx, actorOf(ctx), in.input())
	if err != nil {
		return nil, err
	}
	n := len(c.Slots) - 1
	v := ReservationCalendar{Starts: models.Map(c.Slots[:n], time.Time.UTC), EndsAt: c.Slots[n].UTC(),
		Devices: models.Map(c.Devices, func(d broker.CalendarDevice) CalendarDevice {
			return CalendarDevice{d.DeviceID, d.ProviderName, d.Number, d.Model, d.Simulated, d.Cores, d.Available, d.Reserved, d.Reservations}
		})}
	if c.More {
		v.Next = c.Devices[len(c.Devices)-1].DeviceID
	}
	return &Response[ReservationCalendar]{v}, nil
}
