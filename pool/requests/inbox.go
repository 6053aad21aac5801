package requests

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// RequestView is a request for one actor.
type RequestView struct {
	models.RequestView
	Own         bool // submitted by the actor
	CanDecide   bool // and it is pending
	CanWithdraw bool
	Facts       *Facts // for approvers and auditors, with Get
}

// Get finds a request, for its requester, its approvers and auditors.
func (s *Service) Get(ctx context.Context, actor policies.Actor, id int64) (v RequestView, err error) {
	if !actor.SignedIn() {
		return v, s.access.Check(actor, policies.Platform, policies.RequestCreate)
	}
	q := s.store.Read(ctx)
	found, err := q.Request(id)
	if err != nil {
		return v, err
	}
	v = s.viewFor(actor, found)
	decides := s.canDecide(actor, found.QuotaRequest)
	sees := decides || s.canAudit(actor)
	if !v.Own && !sees {
		return RequestView{}, models.NotFound("request")
	}
	if sees {
		v.Facts, err = s.facts(q, found.QuotaRequest)
	}
	return v, err
}

func (s *Service) viewFor(actor policies.Actor, found models.RequestView) RequestView {
	own, open := found.RequesterID == actor.User.ID, found.State == models.RequestPending
	decides := s.canDecide(actor, found.QuotaRequest)
	member := found.ProjectID != nil && actor.MemberOf(*found.ProjectID)
	found.PresentWithheld = !member && !decides && !s.canAudit(actor) // from a requester who has left
	return RequestView{RequestView: found, Own: own, CanWithdraw: own && open,
		CanDecide: open && decides && (!own || s.decidesDirectly(actor))}
}

func (s *Service) viewsFor(actor policies.Actor, rows []models.RequestView) []RequestView {
	return models.Map(rows, func(row models.RequestView) RequestView { return s.viewFor(actor, row) })
}

// Inbox lists the requests that the actor may decide or audit: pending ones, oldest
// first, or closed ones, newest first.
func (s *Service) Inbox(ctx context.Context, actor policies.Actor, settled bool, page store.Page) ([]RequestView, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.RequestCreate)
	}
	q, d := s.store.Read(ctx), s.decidableBy(actor)
	if !d.All && s.canAudit(actor) {
		d = store.DecidableRequests{All: true}
	}
	if !d.All && len(d.Projects) == 0 {
		return nil, nil
	}
	list := q.PendingRequests
	if settled {
		list = q.ClosedRequests
	}
	rows, err := list(d, page)
	return s.viewsFor(actor, rows), err
}

// Mine lists the actor's requests, newest first.
func (s *Service) Mine(ctx context.Context, actor policies.Actor, page store.Page) ([]RequestView, error) {
	if !actor.SignedIn() {
		return nil, s.access.Check(actor, policies.Platform, policies.RequestCreate)
	}
	rows, err := s.store.Read(ctx).RequestsOf(actor.User.ID, page)
	return s.viewsFor(actor, rows), err
}

// Waiting counts the requests that wait for the actor's decision.
func (s *Service) Waiting(ctx context.Context, actor policies.Actor) (int64, error) {
	d := s.decidableBy(actor)
	if !d.All && len(d.Projects) == 0 {
		return 0, nil
	}
	return s.store.Read(ctx).CountPending(d)
}
