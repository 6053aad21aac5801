package broker

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/timeline"
)

// Pool is the GPUs that can be reserved.
type Pool interface {
	// Reservable returns what a project can reserve for a demand, whose GPU memory it
	// completes: devices, and what is taken of them from now on, with reservations as
	// they are assumed to be.
	Reservable(q *store.Queries, project int64, d models.Demand,
		as models.AssumedReservations) (models.Demand, []timeline.Device, []timeline.Grant, error)
	// MatchesModel reports whether the model of a device is what was asked for.
	MatchesModel(model, asked string) bool
	// Unusable lists those of reservations of whose GPUs one that they have now cannot be used.
	Unusable(q *store.Queries, reservations []int64) ([]int64, error)
	// FairShares returns for a project its decayed use and that of all, in GPU core-hours,
	// and the project's share.
	FairShares(q *store.Queries) (func(p models.Project) (use, all, share float64), error)
}

// Rules bound what is reserved.
type Rules struct {
	MaxAhead    time.Duration // from now until the end of a reservation
	MaxDuration time.Duration
	// Budget bounds the GPU core-hours that a member has reserved ahead: the limit of the
	// role for this time.
	Budget time.Duration
	// UseWithin is how soon after its start, or after it can be used, a reservation must be used.
	UseWithin  time.Duration
	Objectives Objectives
}

// DefaultRules are the rules of a new server.
var DefaultRules = Rules{MaxAhead: 90 * 24 * time.Hour, MaxDuration: 7 * 24 * time.Hour, Budget: 40 * time.Hour,
	UseWithin: 15 * time.Minute, Objectives: Objectives{Placement: Pack}}

// Service decides on requests for reservations.
type Service struct {
	store  *store.Store
	access *policies.Access
	pool   Pool
	rules  Rules

	arrivals arrivals
	advanced time.Time // when Advance last succeeded; zero: not in this process
}

// New returns a service.
func New(store *store.Store, access *policies.Access, pool Pool, rules Rules) *Service {
	return &Service{store: store, access: access, pool: pool, rules: rules, arrivals: arrivals{deciding: make(chan struct{}, 1)}}
}

// View is a reservation with its grants, by start, and what the actor may do with it
// now.
type View struct {
	models.ReservationView
	Grants    []models.GrantView
	ExpiresAt *time.Time // if it is not used; nil: it was used, or has ended
	CanCancel bool
	CanChange bool

	UsedMS, UnusedMS int64 // of what was reserved until now, GPU cores × milliseconds
}

func (s *Service) view(actor policies.Actor, r models.ReservationView, grants []models.GrantView, used int64) View {
	v := View{ReservationView: r, Grants: grants, UsedMS: used, UnusedMS: -used}
	for _, g := range grants {
		v.UnusedMS += g.Cores * max(earlier(g.EndsAt, s.store.Now()).Sub(g.StartsAt), 0).Milliseconds()
	}
	v.UnusedMS = max(v.UnusedMS, 0)
	if !r.State.Ended() {
		v.CanCancel = s.access.MayOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceStop)
		v.CanChange = r.UserID == actor.User.ID && s.access.May(actor, r.ProjectID, policies.WorkspaceLaunch)
	}
	if r.UsedAt == nil && !r.State.Ended() {
		v.ExpiresAt = new(s.expiry(r.Reservation))
	}
	return v
}

// expiry is when a reservation expires if it is not used.
func (s *Service) expiry(r models.Reservation) time.Time {
	return earlier(usableSince(r).Add(s.rules.UseWithin), r.EndsAt)
}

// usableSince is when a reservation began, or could be used if that is later.
func usableSince(r models.Reservation) time.Time {
	if r.UsableAt != nil {
		return later(r.StartsAt, *r.UsableAt)
	}
	return r.StartsAt
}

// View shows a reservation of a project that the actor may see.
func (s *Service) View(ctx context.Context, actor policies.Actor, id int64) (v View, err error) {
	q := s.store.Read(ctx)
	r, err := q.Reservation(actor.Scope(), id)
	switch {
	case !actor.SignedIn():
		return v, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	case err != nil:
		return v, err
	}
	if err := s.access.CheckOwned(actor, r.UserID, r.ProjectID, policies.WorkspaceRead); err != nil {
		return v, err
	}
	grants, err1 := q.GrantsOf(id)
	used, err2 := q.UsedOfReservations(id)
	return s.view(actor, r, grants, used[id]), errors.Join(err1, err2)
}

// List shows the actor's own reservations, and those of others in projects whose
// workspaces the actor may see, newest first.
func (s *Service) List(ctx context.Context, actor policies.Actor, f store.ReservationFilter, page store.Page) ([]View, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.WorkspaceRead)
	}
	f.Visible = s.access.Visible(actor, policies.WorkspaceRead)
	q := s.store.Read(ctx)
	list, err := q.Reservations(actor.Scope(), f, page)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	ids := models.Map(list, func(r models.ReservationView) int64 { return r.ID })
	grants, err1 := q.GrantsByReservation(ids...)
	used, err2 := q.UsedOfReservations(ids...)
	views := models.Map(list, func(r models.ReservationView) View { return s.view(actor, r, grants[r.ID], used[r.ID]) })
	return views, errors.Join(err1, err2)
}

// Cancel ends a reservation. What is used in it ends with it.
func (s *Service) Cancel(ctx context.Context, actor policies.Actor, id int64) error {
	v, err := s.View(ctx, actor, id)
	if err != nil {
		return err
	}
	return s.access.WriteOwned(ctx, s.store, actor, v.UserID, v.ProjectID, policies.WorkspaceStop, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		r, err := q.LockReservation(store.AllProjects, id)
		if err != nil {
			return err
		}
		switch state := s.stateAt(r, q.Now()); {
		case state.Ended():
			return models.Conflict("This reservation is already %s.", state.Words())
		case r.UserID == actor.User.ID && s.late(r, q.Now()):
			return end(q, actor, &r, models.ReservationExpired, models.Say("Canceled by %s after its start, without being used.", actor.Label()))
		default:
			return end(q, actor, &r, models.ReservationCanceled, models.Say("Canceled by %s.", actor.Label()))
		}
	})
}

// late reports whether a reservation that its owner cancels now counts as not used: half of
// the time in which it has to be used is over. Otherwise whoever cancels it just in time
// would block its GPUs for nothing.
func (s *Service) late(r models.Reservation, now time.Time) bool {
	began := usableSince(r)
	half := s.expiry(r).Sub(began) / 2
	return r.UsedAt == nil && !s.cutShort(r) && !now.Before(began.Add(half))
}

// stateAt is the state of a reservation at a moment, also if it has not been written yet.
func (s *Service) stateAt(r models.Reservation, now time.Time) models.ReservationState {
	switch {
	case r.State.Ended() || now.Before(r.StartsAt):
		return r.State
	case r.UsedAt == nil && !now.Before(s.expiry(r)) && !s.cutShort(r):
		return models.ReservationExpired
	case !now.Before(r.EndsAt):
		return models.ReservationDone
	default:
		return models.ReservationActive
	}
}

// end ends a reservation now, with an entry in the audit log. Its user is told, unless they have canceled it; whoever
// did not use it is told so instead.
func end(q *store.Queries, actor policies.Actor, r *models.Reservation, state models.ReservationState, reason models.Text) error {
	from, now := r.State, q.Now()
	r.State, r.Reason, r.EndedAt = state, reason, &now
	if err := q.TransitionReservation(r, from); err != nil {
		return err
	}
	models.Failpoint("reservation.ended")
	if state != models.ReservationExpired && actor.User.ID != r.UserID {
		if err := notify(q, *r, models.NotificationReservationEnded,
			models.Say("Your reservation of %s has ended. %s", describe(*r), reason)); err != nil {
			return err
		}
	}
	return actor.Audit(q, policies.Change{Action: "end", Object: "reservation", ID: r.ID, Project: r.ProjectID,
		Before: map[string]any{"state": from}, After: map[string]any{"state": state}})
}
