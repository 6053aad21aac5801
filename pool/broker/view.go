package broker

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

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
