package web

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"time"

	"weir/models"
)

// ReservationRow is a reservation with its grants, and what the reader may do with it.
type ReservationRow struct {
	models.ReservationView
	Grants    []models.GrantView
	ExpiresAt *time.Time // if it is not used
	CanCancel bool
	CanChange bool
	CanLaunch bool // it is active, and the reader's own

	UsedMS, UnusedMS int64 // of what was reserved until now, GPU cores × milliseconds
}

// ReservationsView lists reservations.
type ReservationsView struct {
	Rows  []ReservationRow
	State string // live, ended, all
	Next  string
	Feed  string // address for calendar programs
}

// ReservationFormView asks for a reservation and shows what would be decided. Fields of
// the form: project_id, class, qos, task_type, gpus, cores, gpu_model, gpu_memory_mib, duration_minutes, from,
// until, time_zone, accept_part, accept_later, client_zone.
type ReservationFormView struct {
	Form     Form
	Projects []Option
	Zones    []string             // of clients; none: the field is not shown
	Decision *ReservationDecision // nil before anything was entered
}

// ReservationChangeView changes a reservation and shows what would be decided. Fields of
// the form: starts_at, ends_at, time_zone.
type ReservationChangeView struct {
	Reservation ReservationRow
	Form        Form
	Decision    *ReservationDecision // nil before anything was entered
}

// ReservationDecision is the decision on a request for a reservation.
type ReservationDecision struct {
	Outcome     string
	Grants      []models.GrantView
	Explanation models.Text // by which objectives they are chosen
	Earliest    *time.Time
	Latest      *time.Time    // until when a reservation can be extended, if more is refused
	Reasons     []models.Text // why it is not allowed
	Score       float64
	Parts       models.ScoreParts // of the score; none: it has no score
	Moves       int               // reservations with lower scores that would be changed
	Changes     []ReservationMove // those of them that the viewer may see
	// Reservations in the way of a request; without ID those that the viewer may not see.
	Conflicts []models.ReservationView
}

// ReservationMove is what a request would change of a reservation.
type ReservationMove struct {
	ID                int64
	Project           string
	From, Until       time.Time
	Cores             int64 // per GPU
	NewFrom, NewUntil time.Time
	NewCores          int64
}

// reservationLabels are the inputs that are called otherwise elsewhere.
var reservationLabels = map[string]string{"gpus": "reserve_gpus", "gpu_memory_mib": "launch.gpu_memory_mib", "from": "reserve_from",
	"until": "reserve_until"}

// changeLabels are the inputs of a change.
var changeLabels = map[string]string{"starts_at": "change_starts_at", "ends_at": "change_ends_at"}

func reservationPath(n int64) string { return "/reservations/" + number(n) }

func (r ReservationRow) simulated() bool {
	return slices.ContainsFunc(r.Grants, func(g models.GrantView) bool { return g.Simulated })
}

// launchPath, runPath and deployPath are the addresses at which a reservation is used.
func (r ReservationRow) launchPath() string { return r.usePath("/launch") }
func (r ReservationRow) runPath() string    { return r.usePath("/runs/new") }
func (r ReservationRow) deployPath() string { return r.usePath("/deployments/new") }

func (r ReservationRow) usePath(at string) string {
	return at + "?" + url.Values{"project_id": {number(r.ProjectID)}, "reservation_id": {number(r.ID)}}.Encode()
}

func (r ReservationRow) demand(ctx context.Context) string {
	text := T(ctx, "%s GPU cores", cores(r.GPUs, r.Cores)) + " · " + models.FormatMiB(r.GPUMemoryMiB)
	if r.GPUModel != "" {
		text += " · " + r.GPUModel
	}
	return text
}

// optionsOf are the values of a field with their names; the first is the default.
func optionsOf[T interface {
	~string
	Words() models.Text
}](ctx context.Context, initial T, values []T) []Option {
	list := []Option{{Value: string(initial), Label: TT(ctx, initial.Words())}}
	for _, v := range values {
		if v != initial {
			list = append(list, Option{Value: string(v), Label: TT(ctx, v.Words())})
		}
	}
	return list
}

// decimals formats a score or a part of one.
func decimals(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }

// headline is a decision in a sentence.
func (d ReservationDecision) headline(ctx context.Context) string {
	switch {
	case len(d.Reasons) > 0:
		return T(ctx, "Not allowed")
	case d.Latest != nil:
		return T(ctx, "Its GPUs are reserved or in use after that.")
	case d.Outcome == "granted":
		return T(ctx, "All can be reserved at the earliest start.")
	case d.Outcome == "partial":
		return T(ctx, "A part can be reserved at the earliest start, the rest later.")
	case d.Outcome == "delayed":
		return T(ctx, "All can be reserved later.")
	case d.Earliest != nil:
		return T(ctx, "Not in this time. Accept a later start, or choose another time.")
	default:
		return T(ctx, "The pool cannot meet this as far ahead as it is known.")
	}
}

// ConfirmCancelReservation asks for confirmation before a reservation is canceled.
func ConfirmCancelReservation(r ReservationRow) ConfirmView {
	v := ConfirmView{Title: models.Say("Cancel this reservation?"), Button: models.Say("Cancel reservation"),
		Consequences: []models.Text{models.Say("Others can use its GPUs at once.")},
		Action:       reservationPath(r.ID) + "/cancel", Back: reservationPath(r.ID)}
	if r.State == models.ReservationActive {
		v.Consequences = append(v.Consequences, models.Say("Workspaces in it are stopped. Their files are kept."))
	}
	return v
}
