package requests

import (
	"context"
	"fmt"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// maxPending is the maximum number of pending requests of one person.
const maxPending = 20

// RequestInput is the input of a request.
type RequestInput struct {
	models.Requested
	Reason string `json:"reason" minLength:"1" maxLength:"2000" doc:"reason for the request; visible to reviewers"`
}

// Check validates the input alone.
func (in RequestInput) Check(now time.Time) error {
	p := in.problems()
	if in.Kind() == "" {
		return p.Err()
	}
	return joined(p, checkTerms(in.Requested, now))
}

// checkTerms validates terms alone.
func checkTerms(terms models.Requested, now time.Time) error {
	return prefixed(terms.Kind(), proposalOf(normalized(terms)).check(now))
}

func (in *RequestInput) problems() (p models.Problems) {
	if in.Reason = models.CheckText("reason", in.Reason, 2000, &p); in.Reason == "" {
		p.Add("reason", "must not be empty")
	}
	if in.Kind() == "" {
		p.Add("kind", "must contain exactly one kind of request")
	}
	return p
}

// Submit creates a request and notifies its approvers.
func (s *Service) Submit(ctx context.Context, actor policies.Actor, in RequestInput) (v RequestView, err error) {
	kind := in.Kind()
	var r *review
	err = s.access.Write(ctx, s.store, actor, policies.Platform, policies.RequestCreate, func(q *store.Queries) error {
		p := in.problems()
		if kind == "" {
			return p.Err()
		}
		r = s.review(q, actor)
		r.submitting, r.requester, r.terms = true, actor.User, normalized(in.Requested)
		if err := r.findProject(); err != nil {
			return prefixed(kind, err)
		}
		if err := joined(p, prefixed(kind, proposalOf(r.terms).examine(r))); err != nil {
			return err
		}
		return r.create(in.Reason)
	})
	if err != nil {
		return v, err
	}
	return s.Get(ctx, actor, r.req.ID)
}

// create creates a valid request and notifies its approvers.
func (r *review) create(reason string) error {
	n, err := r.q.CountPendingOf(r.requester.ID)
	if err != nil {
		return err
	}
	if n >= maxPending {
		return models.NoCapacity("", "You have %d pending requests, the maximum. Withdraw one or wait for a decision.", n)
	}
	if err := r.checkDuplicate(); err != nil {
		return err
	}
	r.req = models.QuotaRequest{Kind: r.terms.Kind(), RequesterID: r.requester.ID, Requested: r.terms, Reason: reason,
		Baseline: r.baseline, State: models.RequestPending, Version: 1, CreatedAt: r.q.Now()}
	r.setSubject()
	if err := r.q.CreateRequest(&r.req); err != nil {
		return err
	}
	if err := notifyApprovers(r.q, r.req); err != nil {
		return err
	}
	return r.actor.Audit(r.q, policies.Change{Action: "submit", Object: "request", ID: r.req.ID, Project: r.project.ID, After: r.req})
}

// Withdraw withdraws a pending request; only the requester may.
func (s *Service) Withdraw(ctx context.Context, actor policies.Actor, id, version int64) (v RequestView, err error) {
	if v, err = s.Get(ctx, actor, id); err != nil {
		return v, err
	}
	if !v.Own {
		return v, models.Forbidden("Only the requester can withdraw a request. You can refuse it instead.")
	}
	err = s.access.WriteOwned(ctx, s.store, actor, v.RequesterID, policies.Platform, policies.RequestWithdraw, func(q *store.Queries) error {
		before, err := pending(q, id, version)
		if err != nil {
			return err
		}
		after, now := before, q.Now()
		after.State, after.DecidedAt = models.RequestWithdrawn, &now
		if err := settle(q, &after); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "withdraw", Object: "request", ID: id, Project: idOrZero(after.ProjectID), Before: before,
			After: after})
	})
	if err != nil {
		return v, err
	}
	return s.Get(ctx, actor, id)
}

// checkDuplicate refuses a second pending request for the same extension.
func (r *review) checkDuplicate() error {
	kind := r.terms.Kind()
	if kind != models.RequestPeriod && kind != models.RequestDeadline {
		return nil
	}
	pending, err := r.q.PendingExtensions(r.requester.ID, []int64{r.project.ID})
	for _, w := range pending {
		if w.Kind == kind && w.RequesterID == r.requester.ID {
			return models.Conflict("You already have a pending request for this. Withdraw it before you submit another one.")
		}
	}
	return err
}

// notifyApprovers notifies the approvers of a new request: the members of the
// project whose role permits the decision, otherwise the administrators.
func notifyApprovers(q *store.Queries, req models.QuotaRequest) error {
	v, err := q.Request(req.ID)
	if err != nil {
		return err
	}
	var to []int64
	if project, right := rightToDecide(req); right == policies.RequestDecide {
		if to, err = q.UsersPermitted(project, models.RequestDecide); err != nil {
			return err
		}
	}
	if to = except(to, req.RequesterID); len(to) == 0 {
		if to, err = q.Administrators(); err != nil {
			return err
		}
	}
	return q.Notify(except(to, req.RequesterID), models.Notification{Kind: models.NotificationRequestAsked,
		Text: models.Say("%s submitted a request: %s.", v.RequesterName, v.What()),
		Link: fmt.Sprintf("/requests/%d", v.ID), Data: v.QuotaRequest})
}

func except(ids []int64, but int64) []int64 {
	return slices.DeleteFunc(ids, func(id int64) bool { return id == but })
}
