package requests

import (
	"context"
	"fmt"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/projects"
)

// Decisions on a request.
const (
	DecisionApprove = "approve"
	DecisionRefuse  = "refuse"
)

// DecisionInput decides a request.
type DecisionInput struct {
	Decision string `json:"decision" enum:"approve,refuse"`
	models.Requested
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"reason; required to refuse, and to approve above the pool's capacity"`
	Confirm bool   `json:"confirm,omitempty" doc:"approve even if allocations exceed the pool's capacity"`
	Version int64  `json:"-"`
}

// auditedDecision is a decision as the audit log records it.
type auditedDecision struct {
	models.QuotaRequest
	Own bool `json:"own,omitempty"` // decided by the requester
}

// Decide approves a request, unchanged or with other terms, or refuses it. An
// approval makes the change in the same transaction; if a rule forbids it, nothing
// is changed and the request stays pending. The error of a concurrent decision
// names its approver.
func (s *Service) Decide(ctx context.Context, actor policies.Actor, id int64, in DecisionInput) (v RequestView, err error) {
	if v, err = s.Get(ctx, actor, id); err == nil {
		err = actor.CheckScope(policies.RequestDecide)
	}
	if err != nil {
		return v, err
	}
	if !s.canDecide(actor, v.QuotaRequest) {
		return v, models.Forbidden("You are not an approver of this request.")
	}
	if v.Own && !s.decidesDirectly(actor) {
		return v, models.Forbidden("You cannot decide your own request. Contact another project manager or a platform administrator.")
	}
	if v.State != models.RequestPending {
		return v, settledBy(v.RequestView)
	}
	if p := in.problems(v.QuotaRequest); len(p) > 0 {
		return v, p.Err()
	}
	var r *review
	project, right := rightToDecide(v.QuotaRequest)
	err = s.access.Write(ctx, s.store, actor, project, right, func(q *store.Queries) error {
		r = s.review(q, actor)
		if err := s.decide(r, id, in); err != nil {
			return err
		}
		models.Failpoint("decide.applied")
		return nil
	})
	if err != nil {
		return v, err
	}
	models.Failpoint("decide.committed")
	s.makeDirectories(ctx, r)
	return s.Get(ctx, actor, id)
}

// Check validates the input for a request alone.
func (in DecisionInput) Check(req models.QuotaRequest, now time.Time) error {
	p := in.problems(req)
	if in.Kind() != req.Kind { // unchanged, or refused
		return p.Err()
	}
	return joined(p, checkTerms(withTarget(in.Requested, req.Requested), now))
}

func (in *DecisionInput) problems(req models.QuotaRequest) models.Problems {
	var p models.Problems
	in.Reason = models.CheckText("reason", in.Reason, 2000, &p)
	if in.Decision != DecisionApprove && in.Decision != DecisionRefuse {
		p.Add("decision", "must be approve or refuse")
	}
	if in.Decision == DecisionRefuse && in.Reason == "" {
		p.Add("reason", "is required to refuse a request")
	}
	if in.Requested != (models.Requested{}) && in.Kind() != req.Kind {
		p.Add("kind", "must match the kind of the request")
	}
	return p
}

// decide is the decision within its transaction.
func (s *Service) decide(r *review, id int64, in DecisionInput) error {
	before, err := pending(r.q, id, in.Version)
	if err != nil {
		return err
	}
	r.req = before
	if r.requester, err = r.q.User(before.RequesterID); err != nil {
		return err
	}
	now := r.q.Now()
	r.req.DeciderID, r.req.DecidedAt, r.req.DecisionReason = &r.actor.User.ID, &now, in.Reason
	v := auditedDecision{Own: before.RequesterID == r.actor.User.ID}
	action := "refuse"
	if in.Decision == DecisionRefuse {
		r.req.State = models.RequestRefused
		err = settle(r.q, &r.req)
	} else {
		action = "approve"
		err = s.approve(r, in)
	}
	if err != nil {
		return err
	}
	v.QuotaRequest = r.req
	if err := notifyRequester(r); err != nil {
		return err
	}
	return r.actor.Audit(r.q, policies.Change{Action: action, Object: "request", ID: id, Project: idOrZero(r.req.ProjectID), Before: before,
		After: v})
}

// approve makes the requested change with the terms of the decision.
func (s *Service) approve(r *review, in DecisionInput) error {
	kind := r.req.Kind
	r.terms = normalized(r.req.Requested)
	if in.Requested != (models.Requested{}) {
		r.terms = normalized(withTarget(in.Requested, r.req.Requested))
	}
	r.req.State = models.RequestApproved
	if !same(r.terms, r.req.Requested) {
		r.req.State = models.RequestAdjusted
	}
	decided := r.terms
	r.req.Decided, r.confirmation = &decided, projects.Confirmation{Confirm: in.Confirm, Reason: in.Reason}
	if err := settle(r.q, &r.req); err != nil {
		return err
	}
	if err := r.findProject(); err != nil {
		return prefixed(kind, err)
	}
	if r.terms.Project != nil || r.terms.Quota != nil {
		if err := r.editor.LockCapacity(); err != nil {
			return err
		}
	}
	p := proposalOf(r.terms)
	if err := p.examine(r); err != nil {
		return prefixed(kind, err)
	}
	return prefixed(kind, p.apply(r))
}

// makeDirectories creates the directories of a new project and member.
func (s *Service) makeDirectories(ctx context.Context, r *review) {
	if r.member == 0 {
		return
	}
	if r.req.Kind == models.RequestProject {
		s.projects.MakeProjectDirectories(ctx, r.project.ID)
	}
	s.projects.MakeMemberDirectory(ctx, r.project.ID, r.member)
}

// notifyRequester notifies webhooks, and the requester unless it is the decider, of the decision.
func notifyRequester(r *review) error {
	v, err := r.q.Request(r.req.ID)
	if err != nil {
		return err
	}
	text := models.Say("Your request was approved: %s.", v.What())
	switch v.State {
	case models.RequestAdjusted:
		text = models.Say("Your request was approved with changes: %s.", v.What())
	case models.RequestRefused:
		text = models.Say("Your request was refused: %s. Reason: %s", v.What(), v.DecisionReason)
	}
	to := except([]int64{v.RequesterID}, r.actor.User.ID)
	return r.q.Notify(to, models.Notification{Kind: models.NotificationOfRequest(v.State), Text: text,
		Link: fmt.Sprintf("/requests/%d", v.ID), Data: v.QuotaRequest})
}
