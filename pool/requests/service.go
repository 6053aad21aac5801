package requests

import (
	"context"
	"slices"

	"weir/models"
	"weir/policies"
	"weir/pool/projects"
)

// maxPending is how many requests of one person may wait at once.
const maxPending = 20

// Service keeps requests, and decides them over what projects keep and what
// capacity there is.
type Service struct {
	store    *models.Store
	access   *policies.Access
	projects *projects.Service
	capacity *projects.Capacity
}

// New keeps requests in store.
func New(store *models.Store, access *policies.Access, p *projects.Service, c *projects.Capacity) *Service {
	return &Service{store: store, access: access, projects: p, capacity: c}
}

// RequestInput asks for one thing.
type RequestInput struct {
	models.Asked
	Reason string `json:"reason" minLength:"1" maxLength:"2000" doc:"why; who decides reads it"`
}

// Verdicts on a request.
const (
	VerdictApprove = "approve"
	VerdictRefuse  = "refuse"
)

// DecisionInput decides a request.
type DecisionInput struct {
	Verdict string `json:"verdict" enum:"approve,refuse"`
	models.Asked
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"needed to refuse, and to promise more than the pool's capacity allows"`
	Confirm bool   `json:"confirm,omitempty" doc:"approve although more would be promised than the pool's capacity allows"`
	Version int64  `json:"-"`
}

// RequestView is a request as one actor may see it.
type RequestView struct {
	models.RequestView
	Own         bool // it is the actor's
	MayDecide   bool // and it is pending
	MayWithdraw bool
	Facts       *Facts // for those who may decide such requests; one request at a time
}

// Ask files a request. Who decides sees it at once.
func (s *Service) Ask(ctx context.Context, actor policies.Actor, in RequestInput) (v RequestView, err error) {
	if err := s.access.Check(actor, policies.Platform, "request", "ask"); err != nil {
		return v, err
	}
	var p models.Problems
	if in.Reason = models.CheckText("reason", in.Reason, 2000, &p); in.Reason == "" {
		p.Add("reason", "must not be empty")
	}
	kind := in.Kind()
	if kind == "" {
		p.Add("kind", "must be one thing that is asked for")
		return v, p.Err()
	}
	need := policies.Need{Project: policies.Platform, Object: "request", Act: "ask"}
	var id int64
	err = s.access.Write(ctx, s.store, actor, need, func(q *models.Queries) error {
		h := s.review(q, actor)
		h.asking, h.requester, h.terms = true, actor.User, normal(in.Asked)
		if err := h.open(); err != nil {
			return under(kind, err)
		}
		if err := joined(p, under(kind, h.proposal().examine(h))); err != nil {
			return err
		}
		n, err := q.CountPendingOf(actor.User.ID)
		if err != nil {
			return err
		}
		if n >= maxPending {
			return models.NoCapacity("", "%d requests of yours wait already, and no more can. Withdraw one, or wait for its decision.", n)
		}
		if err := h.askedTwice(); err != nil {
			return err
		}
		h.req = models.QuotaRequest{Kind: kind, RequesterID: actor.User.ID, Asked: h.terms, Reason: in.Reason, State: models.RequestPending,
			Version: 1, CreatedAt: q.Now()}
		h.concern()
		if err := q.CreateRequest(&h.req); err != nil {
			return err
		}
		id = h.req.ID
		if err := notifyDeciders(q, h.req); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "ask", Object: "request", ID: id, Project: h.project.ID, After: h.req})
	})
	if err != nil {
		return v, err
	}
	return s.Get(ctx, actor, id)
}

// joined adds the fields that a service refused to those found before.
func joined(p models.Problems, err error) error {
	e, ok := err.(*models.Error)
	switch {
	case len(p) == 0, err != nil && (!ok || e.Kind != models.KindInvalid):
		return err
	case ok && e != nil:
		p = append(p, e.Fields...)
	}
	return p.Err()
}

// Withdraw takes back a request that is not decided yet; only who asked may.
func (s *Service) Withdraw(ctx context.Context, actor policies.Actor, id, version int64) (v RequestView, err error) {
	if v, err = s.Get(ctx, actor, id); err != nil {
		return v, err
	}
	if !v.Own {
		return v, models.Forbidden("Only who asked can withdraw a request. It can be refused.")
	}
	need := policies.Need{Project: policies.Platform, Object: "request", Act: "withdraw", Owner: v.RequesterID}
	err = s.access.Write(ctx, s.store, actor, need, func(q *models.Queries) error {
		before, err := pending(q, id, version)
		if err != nil {
			return err
		}
		after, now := before, q.Now()
		after.State, after.DecidedAt = models.RequestWithdrawn, &now
		if err := settle(q, &after); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "withdraw", Object: "request", ID: id, Project: at(after.ProjectID), Before: before, After: after})
	})
	if err != nil {
		return v, err
	}
	return s.Get(ctx, actor, id)
}

// pending reads a request that nobody has decided.
func pending(q *models.Queries, id, version int64) (models.QuotaRequest, error) {
	v, err := q.Request(id)
	if err != nil {
		return v.QuotaRequest, err
	}
	if v.State != models.RequestPending {
		return v.QuotaRequest, settledBy(v)
	}
	return v.QuotaRequest, models.CheckVersion("request", version, v.Version)
}

// settle writes how a request ended, unless somebody was faster.
func settle(q *models.Queries, req *models.QuotaRequest) error {
	settled, err := q.SettleRequest(req)
	if err != nil || settled {
		return err
	}
	v, err := q.Request(req.ID)
	if err != nil {
		return err
	}
	return settledBy(v)
}

// settledBy names who was faster.
func settledBy(v models.RequestView) error {
	switch v.State {
	case models.RequestWithdrawn:
		return models.Conflict("This request was withdrawn by %s.", v.RequesterName)
	case models.RequestRefused:
		return models.Conflict("%s has refused this request already.", v.DeciderName)
	default:
		return models.Conflict("%s has approved this request already.", v.DeciderName)
	}
}

// Get shows a request to who asked, and to those who may decide it, the
// latter with what else is to be known.
func (s *Service) Get(ctx context.Context, actor policies.Actor, id int64) (v RequestView, err error) {
	if !actor.Signed() {
		return v, s.access.Check(actor, policies.Platform, "request", "ask")
	}
	q := s.store.Read(ctx)
	found, err := q.Request(id)
	if err != nil {
		return v, err
	}
	v = s.viewFor(actor, found)
	decides := s.decides(actor, found.QuotaRequest)
	sees := decides || s.audits(actor)
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
	return RequestView{RequestView: found, Own: own, MayWithdraw: own && open,
		MayDecide: open && s.decides(actor, found.QuotaRequest) && (!own || s.direct(actor))}
}

// decides tells whether the actor has the right that the request needs.
func (s *Service) decides(actor policies.Actor, req models.QuotaRequest) bool {
	need := needOf(req)
	return s.access.May(actor, need.Project, need.Object, need.Act)
}

// direct tells whether the actor may decide their own requests: platform
// administrators, who could have made the change anyway.
func (s *Service) direct(actor policies.Actor) bool {
	return s.access.May(actor, policies.Platform, "request", "decide")
}

// needOf is the right to decide a request: what belongs to the platform needs
// the right to change it, and what belongs to a project its request:decide.
// What is granted is bound by what who decides may grant, in any case.
func needOf(req models.QuotaRequest) policies.Need {
	need := policies.Need{Project: at(req.ProjectID), Act: "write"}
	switch req.Kind {
	case models.AskForProject:
		need.Project, need.Object = policies.Platform, "project"
	case models.AskForQuota, models.AskForPeriod:
		need.Object = "project"
	default:
		need.Object, need.Act = "request", "decide"
	}
	return need
}

// at is an optional id; 0 where there is none.
func at(id *int64) int64 {
	if id == nil {
		return 0
	}
	return *id
}

// deciding is which requests wait for the actor.
func (s *Service) deciding(actor policies.Actor) models.Deciding {
	d := models.Deciding{All: s.direct(actor), But: actor.User.ID}
	for project := range actor.Grants {
		if !d.All && s.access.May(actor, project, "request", "decide") {
			d.Projects = append(d.Projects, project)
		}
	}
	slices.Sort(d.Projects)
	return d
}

// audits tells whether the actor may see requests that others decide.
func (s *Service) audits(actor policies.Actor) bool {
	return s.access.May(actor, policies.Platform, "request", "read")
}

// Decides tells whether there are requests that the actor may decide at all.
func (s *Service) Decides(actor policies.Actor) bool {
	d := s.deciding(actor)
	return d.All || len(d.Projects) > 0
}

// Inbox lists the requests that the actor may decide, or audit: what is pending, oldest
// first, or what is settled, newest first.
func (s *Service) Inbox(ctx context.Context, actor policies.Actor, settled bool, page models.Page) ([]RequestView, error) {
	if !actor.Signed() {
		return nil, s.access.Check(actor, policies.Platform, "request", "ask")
	}
	q, d := s.store.Read(ctx), s.deciding(actor)
	if !d.All && s.audits(actor) {
		d = models.Deciding{All: true}
	}
	if !d.All && len(d.Projects) == 0 {
		return nil, nil
	}
	list := q.PendingRequests
	if settled {
		list = q.SettledRequests
	}
	rows, err := list(d, page)
	return s.viewsFor(actor, rows), err
}

// Mine lists what the actor has asked for, newest first.
func (s *Service) Mine(ctx context.Context, actor policies.Actor, page models.Page) ([]RequestView, error) {
	if !actor.Signed() {
		return nil, s.access.Check(actor, policies.Platform, "request", "ask")
	}
	rows, err := s.store.Read(ctx).RequestsOf(actor.User.ID, page)
	return s.viewsFor(actor, rows), err
}

func (s *Service) viewsFor(actor policies.Actor, rows []models.RequestView) []RequestView {
	views := make([]RequestView, len(rows))
	for i, row := range rows {
		views[i] = s.viewFor(actor, row)
	}
	return views
}

// Waiting counts the requests that wait for the actor's decision.
func (s *Service) Waiting(ctx context.Context, actor policies.Actor) (int64, error) {
	d := s.deciding(actor)
	if !d.All && len(d.Projects) == 0 {
		return 0, nil
	}
	return s.store.Read(ctx).CountPending(d)
}
