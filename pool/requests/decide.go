package requests

import (
	"context"
	"fmt"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/pool/quota"
)

// verdict is a decision as the audit keeps it.
type verdict struct {
	models.QuotaRequest
	Own    bool     `json:"own,omitempty"`    // decided by who asked
	Beyond []string `json:"beyond,omitempty"` // what was promised beyond the limits, knowingly
}

// Decide approves a request, as it was asked or with other numbers, or
// refuses it. An approval changes what was asked for in the same transaction;
// where a rule forbids that, nothing is changed and the request stays. Of
// several who decide one wins: the others are told who.
func (s *Service) Decide(ctx context.Context, actor policies.Actor, id int64, in DecisionInput) (v RequestView, err error) {
	if v, err = s.Get(ctx, actor, id); err != nil {
		return v, err
	}
	if !s.decides(actor, v.QuotaRequest) {
		return v, models.Forbidden("Somebody else decides this request.")
	}
	if v.Own && !s.direct(actor) {
		return v, models.Forbidden("Nobody decides their own request. Another manager of the project can, or a platform administrator.")
	}
	if v.State != models.RequestPending {
		return v, settledBy(v.RequestView)
	}
	if err := in.check(v.QuotaRequest); err != nil {
		return v, err
	}
	var h *review
	err = s.access.Write(ctx, s.store, actor, needOf(v.QuotaRequest), func(q *models.Queries) error {
		h = s.review(q, actor)
		if err := s.decide(h, id, in); err != nil {
			return err
		}
		models.Failpoint("decide.applied")
		return nil
	})
	if err != nil {
		return v, err
	}
	models.Failpoint("decide.committed")
	s.makeDirectories(ctx, h)
	return s.Get(ctx, actor, id)
}

func (in *DecisionInput) check(req models.QuotaRequest) error {
	var p models.Problems
	in.Reason = models.CheckText("reason", in.Reason, 2000, &p)
	if in.Verdict != VerdictApprove && in.Verdict != VerdictRefuse {
		p.Add("verdict", "must be approve or refuse")
	}
	if in.Verdict == VerdictRefuse && in.Reason == "" {
		p.Add("reason", "must say why it is refused")
	}
	if in.Asked != (models.Asked{}) && in.Kind() != req.Kind {
		p.Add("kind", "must be what was asked for")
	}
	return p.Err()
}

// decide is the decision within its transaction.
func (s *Service) decide(h *review, id int64, in DecisionInput) error {
	before, err := pending(h.q, id, in.Version)
	if err != nil {
		return err
	}
	h.req = before
	if h.requester, err = h.q.User(before.RequesterID); err != nil {
		return err
	}
	now := h.q.Now()
	h.req.DeciderID, h.req.DecidedAt, h.req.DecisionReason = &h.actor.User.ID, &now, in.Reason
	v := verdict{Own: before.RequesterID == h.actor.User.ID}
	action := "refuse"
	if in.Verdict == VerdictRefuse {
		h.req.State = models.RequestRefused
		err = settle(h.q, &h.req)
	} else {
		action = "approve"
		v.Beyond, err = s.approve(h, in)
	}
	if err != nil {
		return err
	}
	v.QuotaRequest = h.req
	if err := notifyRequester(h); err != nil {
		return err
	}
	return h.actor.Audit(h.q, policies.Change{Action: action, Object: "request", ID: id, Project: at(h.req.ProjectID), Before: before, After: v})
}

// approve does what was asked for, with the numbers of the decision.
func (s *Service) approve(h *review, in DecisionInput) (over []string, err error) {
	kind := h.req.Kind
	h.terms = normal(h.req.Asked)
	if in.Asked != (models.Asked{}) {
		h.terms = normal(about(in.Asked, h.req.Asked))
	}
	h.req.State = models.RequestApproved
	if !same(h.terms, h.req.Asked) {
		h.req.State = models.RequestAdjusted
	}
	decided := h.terms
	h.req.Decided = &decided
	if err := settle(h.q, &h.req); err != nil {
		return nil, err
	}
	if err := h.open(); err != nil {
		return nil, under(kind, err)
	}
	p := h.proposal()
	if err := p.examine(h); err != nil {
		return nil, under(kind, err)
	}
	if over, err = s.withinCapacity(h, p.growth(h), in); err != nil {
		return nil, err
	}
	return over, under(kind, p.apply(h))
}

// withinCapacity refuses to allocate beyond what the capacity allows, unless
// who decides confirms it and says why.
func (s *Service) withinCapacity(h *review, more models.Resources, in DecisionInput) (said []string, err error) {
	if len(quota.Exceeded(more, models.Resources{})) == 0 {
		return nil, nil
	}
	if err := h.q.LockPool(); err != nil { // two approvals never count on the same remainder
		return nil, err
	}
	rows, err := s.capacity.Rows(h.q)
	if err != nil {
		return nil, err
	}
	over := projects.Beyond(rows, more)
	if len(over) == 0 {
		return nil, nil
	}
	if in.Confirm && in.Reason != "" {
		for _, t := range over {
			said = append(said, t.String())
		}
		return said, nil
	}
	all := over[0]
	for _, t := range over[1:] {
		all = models.Say("%s; %s", all, t)
	}
	e := models.NoCapacity("", "More would be promised than the pool's capacity allows. Nothing was changed. Confirm it and say why, or approve less.")
	e.Fields = []models.Field{{Name: "confirm", Reason: all}}
	if in.Reason == "" {
		e.Fields = append(e.Fields, models.Field{Name: "reason", Reason: models.Say("must say why more is promised")})
	}
	return nil, e
}

// makeDirectories makes those of what an approval has made.
func (s *Service) makeDirectories(ctx context.Context, h *review) {
	if h.member == 0 {
		return
	}
	if h.req.Kind == models.AskForProject {
		s.projects.MakeProjectDirectories(ctx, h.project.ID)
	}
	s.projects.MakeMemberDirectory(ctx, h.project.ID, h.member)
}

// notifyDeciders lets those know who decide a new request: of what belongs to a
// project, those whose role there permits it, and where nobody's does, the
// platform's administrators, who decide all else.
func notifyDeciders(q *models.Queries, req models.QuotaRequest) error {
	v, err := q.Request(req.ID)
	if err != nil {
		return err
	}
	var to []int64
	if need := needOf(req); need.Object == "request" {
		if to, err = permitted(q, need.Project, models.RequestDecide); err != nil {
			return err
		}
	}
	if to = others(to, req.RequesterID); len(to) == 0 {
		if to, err = q.Administrators(); err != nil {
			return err
		}
	}
	return q.Tell(others(to, req.RequesterID), models.Notice{Kind: "request.asked", Text: models.Say("%s asks for something: %s.", v.RequesterName, v.What()),
		Link: fmt.Sprintf("/requests/%d", v.ID), Data: v.QuotaRequest})
}

func others(ids []int64, but int64) []int64 {
	return slices.DeleteFunc(ids, func(id int64) bool { return id == but })
}

// notifyRequester lets who asked know how it ended.
func notifyRequester(h *review) error {
	if h.req.RequesterID == h.actor.User.ID {
		return nil
	}
	v, err := h.q.Request(h.req.ID)
	if err != nil {
		return err
	}
	text := models.Say("What you asked for is approved: %s.", v.What())
	switch v.State {
	case models.RequestAdjusted:
		text = models.Say("What you asked for is approved with other numbers: %s.", v.What())
	case models.RequestRefused:
		text = models.Say("What you asked for is refused: %s. The reason: %s", v.What(), v.DecisionReason)
	}
	return h.q.Tell([]int64{v.RequesterID}, models.Notice{Kind: "request." + string(v.State), Text: text,
		Link: fmt.Sprintf("/requests/%d", v.ID), Data: v.QuotaRequest})
}
