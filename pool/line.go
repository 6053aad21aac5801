package pool

import (
	"context"
	"slices"
	"time"

	"weir/models"
	"weir/pool/placement"
	"weir/pool/queue"
	"weir/pool/timeline"
)

// WaitingView is a workspace that waits for shares.
type WaitingView struct {
	models.QueuedView
	Place     int
	Behind    queue.Criterion // why it does not stand before its predecessor
	Forecast  Forecast
	Anonymous bool
}

// Forecast is when a request that waits can be met, as far as that can be
// told.
type Forecast struct {
	Outcome timeline.Outcome
	At      time.Time // when Placed
	Known   bool      // by rules alone; otherwise from how long such shares were held in the past
	Text    models.Text
}

// UnmetView is demand that the pool does not meet, by model and size.
type UnmetView struct {
	Model   string // asked for; empty: any
	GPUs    int64
	Cores   int64 // per GPU
	Waiting int64 // requests that wait now
	Refused int64 // in the last day
	Oldest  *time.Time
}

// unmetPeriod is for how long a refusal counts as unmet demand.
const unmetPeriod = 24 * time.Hour

// line is everybody who waits, in the order in which they are served.
type line struct {
	views  []models.QueuedView
	ranked []queue.Ranked
	byID   map[int64]models.QueuedView
}

// line ranks those who wait, with one more request if there is an extra one.
func (p *Pool) line(q *models.Queries, s state, extra *models.QueuedView) (l line, err error) {
	if l.views, err = q.Queued(); err != nil {
		return l, err
	}
	if extra != nil {
		l.views = append(l.views, *extra)
	}
	held := map[int64]int64{}
	for _, share := range s.shares {
		held[share.ProjectID] += share.Cores
	}
	l.byID = make(map[int64]models.QueuedView, len(l.views))
	requests := make([]queue.Request, len(l.views))
	for i, v := range l.views {
		l.byID[v.ID] = v
		requests[i] = queue.Request{ID: v.ID, Project: v.ProjectID, Member: v.MemberID, Priority: int(v.ProjectPriority),
			Demand: demandOf(v.ProjectID, v.Demand), Held: held[v.ProjectID], Quota: v.ProjectQuota, Since: v.RequestedAt}
	}
	l.ranked = queue.Order(requests, s.now, patience)
	return l, nil
}

// lineFor is the line with w in it, who need not exist yet.
func (p *Pool) lineFor(q *models.Queries, s state, w models.Workspace) (line, error) {
	if w.ID != 0 {
		return p.line(q, s, nil)
	}
	extra, err := asks(q, w)
	if err != nil {
		return line{}, err
	}
	return p.line(q, s, extra)
}

// Turns lists the workspaces that wait, in the order in which they are to be
// served, each with the pool's answer as things stand before any is served.
func (p *Pool) Turns(q *models.Queries) ([]models.Turn, error) {
	s, err := p.load(q)
	if err != nil {
		return nil, err
	}
	l, err := p.line(q, s, nil)
	if err != nil {
		return nil, err
	}
	turns := make([]models.Turn, len(l.ranked))
	keeper := keeper{pool: p, q: q, state: s, nodes: map[int64]bool{}}
	for i, r := range l.ranked {
		w := l.byID[r.ID].Workspace
		turns[i] = models.Turn{Workspace: w, Answer: answer(s, r.Demand, w.Demand, *p.policy.Load(), keeper.nodes)}
		if err := keeper.keep(r, w); err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// asks is the request of a workspace that does not exist yet: it would stand
// at the end of its like.
func asks(q *models.Queries, w models.Workspace) (*models.QueuedView, error) {
	project, err := q.Project(models.Everything, w.ProjectID)
	if err != nil {
		return nil, err
	}
	v := models.QueuedView{ProjectPriority: project.Priority, ProjectQuota: project.Quota.GPUCores}
	v.Workspace, v.ID, v.RequestedAt = w, unborn, q.Now()
	return &v, nil
}

// unborn is the id of a request that nobody has made yet; it is larger than
// any real one.
const unborn = int64(1) << 62

// Forecast tells when the demand of w could be met if it waits from now on.
func (p *Pool) Forecast(ctx context.Context, w models.Workspace) (Forecast, error) {
	q := p.store.Read(ctx)
	s, err := p.load(q)
	if err != nil {
		return Forecast{}, err
	}
	w.ID = 0
	l, err := p.lineFor(q, s, w)
	if err != nil {
		return Forecast{}, err
	}
	forecasts, err := p.forecast(q, s, l)
	return forecasts[unborn], err
}

// forecast tells of everybody in the line when they can be served.
func (p *Pool) forecast(q *models.Queries, s state, l line) (map[int64]Forecast, error) {
	if len(l.ranked) == 0 {
		return nil, nil
	}
	spans, err := q.PastSpans(500)
	if err != nil {
		return nil, err
	}
	ends, err := s.ends(q, spans)
	if err != nil {
		return nil, err
	}
	waiting := make([]timeline.Waiting, len(l.ranked))
	for i, r := range l.ranked {
		lasts, _ := timeline.Remaining(0, spans.Of(r.Project), 0)
		waiting[i] = timeline.Waiting{Holder: r.ID, Demand: r.Demand, Lasts: lasts, Firm: r.Since.Add(patience), NotLent: s.notLent(r.Project)}
	}
	forecasts := make(map[int64]Forecast, len(waiting))
	policy := *p.policy.Load()
	for i, e := range timeline.Forecast(s.snapshot(today, everybody), ends, waiting, s.now, policy) {
		f := Forecast{Outcome: e.Outcome, At: e.At, Known: e.Known}
		f.Text = s.words(f)
		if e.Outcome == timeline.Never {
			if _, refusal := placement.Place(s.snapshot(ever, l.ranked[i].Project), l.ranked[i].Demand, policy); refusal == nil {
				f.Outcome, f.Text = timeline.Unknown, models.Say("not before a machine that does not lend now lends again")
			}
		}
		forecasts[e.Holder] = f
	}
	return forecasts, nil
}

// words says what a forecast amounts to.
func (s state) words(f Forecast) models.Text {
	wait := f.At.Sub(s.now)
	switch {
	case f.Outcome == timeline.Never:
		return models.Say("never with the GPUs that the pool has")
	case f.Outcome == timeline.Unknown:
		return models.Say("not known: too little was held before to tell")
	case wait < time.Minute:
		return models.Say("within a minute")
	case wait < time.Hour:
		return models.Say("in about %d minutes", int64(wait.Round(time.Minute)/time.Minute))
	case wait < 48*time.Hour:
		return models.Say("in about %d hours", int64(wait.Round(time.Hour)/time.Hour))
	default:
		return models.Say("in about %d days", int64(wait.Round(24*time.Hour)/(24*time.Hour)))
	}
}

// ends are when those who hold shares are expected to leave: by what their
// holders were told, by the end of the membership or the project, or by how
// long shares of their project were held before.
func (s state) ends(q *models.Queries, spans models.Spans) ([]timeline.End, error) {
	periods, err := q.PeriodEnds()
	if err != nil {
		return nil, err
	}
	closing := map[int64]*time.Time{}
	for _, p := range s.providers {
		if open, until := p.Terms.Open(s.now); open {
			closing[p.ID] = until
		}
	}
	ends := map[int64]timeline.End{}
	for _, share := range s.shares {
		age := s.now.Sub(share.From)
		e := timeline.End{Holder: share.WorkspaceID}
		closes := closing[s.byID[share.DeviceID].ProviderID]
		if left, ok := timeline.Remaining(age, spans.Of(share.ProjectID), 0); ok {
			e.At = s.now.Add(left)
		}
		for _, at := range []*time.Time{share.EndsAt, periods[share.WorkspaceID]} {
			if at != nil && (e.At.IsZero() || at.Before(e.At)) {
				e.At, e.Known = *at, true
			}
		}
		if closes != nil && !e.At.Before(*closes) {
			continue // what is left then, the machine does not lend any more
		}
		if !e.At.IsZero() {
			ends[share.WorkspaceID] = e
		}
	}
	list := make([]timeline.End, 0, len(ends))
	for _, e := range ends {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b timeline.End) int { return int(a.Holder - b.Holder) })
	return list, nil
}

// notLent are the devices that their owners do not lend to a project, though
// to others.
func (s state) notLent(project int64) (ids []int64) {
	terms := map[int64]models.Terms{}
	for _, p := range s.providers {
		terms[p.ID] = p.Terms
	}
	for _, d := range s.devices {
		if !lends(terms[d.ProviderID], s.lender(d), project) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// waiting shows the line to an actor: the requests of projects that are not
// the actor's have no names.
func (r reader) waiting(q *models.Queries, s state) ([]WaitingView, error) {
	l, err := r.pool.line(q, s, nil)
	if err != nil {
		return nil, err
	}
	forecasts, err := r.pool.forecast(q, s, l)
	views := make([]WaitingView, len(l.ranked))
	for i, request := range l.ranked {
		v := WaitingView{QueuedView: l.byID[request.ID], Place: request.Place, Behind: request.Behind, Forecast: forecasts[request.ID]}
		if !r.mayRead(request.Project) {
			v.Anonymous = true
			v.QueuedView = models.QueuedView{WorkspaceView: models.WorkspaceView{
				Workspace: models.Workspace{Demand: v.Demand, RequestedAt: v.RequestedAt, State: v.State}}}
		}
		views[i] = v
	}
	return views, err
}

// unmet adds up what waits and what was refused lately, the largest first.
func (p *Pool) unmet(q *models.Queries, s state) ([]UnmetView, error) {
	waiting, err := q.Queued()
	if err != nil {
		return nil, err
	}
	type size struct {
		model       string
		gpus, cores int64
	}
	sums := map[size]*UnmetView{}
	of := func(d models.Demand) *UnmetView {
		k := size{d.GPUModel, d.GPUs, d.Cores}
		if sums[k] == nil {
			sums[k] = &UnmetView{Model: d.GPUModel, GPUs: d.GPUs, Cores: d.Cores}
		}
		return sums[k]
	}
	for _, w := range waiting {
		if w.Demand.GPUs == 0 {
			continue
		}
		u := of(w.Demand)
		u.Waiting++
		if u.Oldest == nil || w.RequestedAt.Before(*u.Oldest) {
			u.Oldest = &w.RequestedAt
		}
	}
	refused, err := q.RefusedDemands(s.now.Add(-unmetPeriod))
	if err != nil {
		return nil, err
	}
	for _, r := range refused {
		of(r.Demand).Refused += r.N
	}
	var list []UnmetView
	for _, u := range sums {
		list = append(list, *u)
	}
	slices.SortFunc(list, func(a, b UnmetView) int {
		return slices.Compare([]int64{-a.Waiting * a.GPUs * a.Cores, -a.Refused * a.GPUs * a.Cores, -a.GPUs, -a.Cores, int64(len(a.Model))},
			[]int64{-b.Waiting * b.GPUs * b.Cores, -b.Refused * b.GPUs * b.Cores, -b.GPUs, -b.Cores, int64(len(b.Model))})
	})
	return list, nil
}

// kept are the nodes on which w may place nothing: they are kept for those who
// come before it in the line and have waited for longer than patience.
func (p *Pool) kept(q *models.Queries, s state, l line, w models.Workspace) (map[int64]bool, error) {
	id := w.ID
	if id == 0 {
		id = unborn
	}
	keeper := keeper{pool: p, q: q, state: s, nodes: map[int64]bool{}}
	for _, r := range l.ranked {
		if r.ID == id {
			break
		}
		if err := keeper.keep(r, l.byID[r.ID].Workspace); err != nil {
			return nil, err
		}
	}
	return keeper.nodes, nil
}

// keeper collects the nodes that are kept, request by request in the order of
// the line.
type keeper struct {
	pool  *Pool
	q     *models.Queries
	state state
	nodes map[int64]bool
}

// keep keeps, for a request that has waited for longer than patience, the
// nodes on which it can come to be placed as they lend today. Who waits only
// for the own peak or the own project's quota keeps nothing.
func (k *keeper) keep(r queue.Ranked, w models.Workspace) error {
	if k.state.now.Sub(r.Since) < patience || r.Demand.GPUs == 0 {
		return nil
	}
	if mayHold, err := withinRoom(k.q, w); err != nil || !mayHold {
		return err
	}
	for _, n := range k.state.snapshot(freed, r.Project).Nodes {
		if k.nodes[n.ID] {
			continue
		}
		if _, refusal := placement.Place(placement.Snapshot{Nodes: []placement.Node{n}}, r.Demand, *k.pool.policy.Load()); refusal == nil {
			k.nodes[n.ID] = true
		}
	}
	return nil
}
