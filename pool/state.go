package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/pool/placement"
)

// state is what the pool knows at one moment, for decisions and for pages. It
// is not changed: what follows from it is another.
type state struct {
	now       time.Time
	home      int64 // the provider that is this machine; 0: none is
	reach     func(models.Provider) bool
	providers []models.Provider
	devices   []models.Device
	shares    []models.ShareView
	byID      map[int64]models.Device
	names     map[int64]string
	lending   map[int64][]models.Device // by provider
	drawn     []placement.Node          // of today, for everybody, in the order of providers; nil: not drawn yet
}

func (p *Pool) read(q *models.Queries) (s state, err error) {
	s.now, s.home, s.reach = q.Now(), p.home.Load(), p.reach
	if s.providers, err = q.Providers(); err != nil {
		return s, err
	}
	if s.devices, err = q.Devices(); err != nil {
		return s, err
	}
	if s.shares, err = q.OpenShares(); err != nil {
		return s, err
	}
	return s.indexed(), nil
}

// indexed finds devices and names by their ids.
func (s state) indexed() state {
	s.byID, s.names, s.lending = map[int64]models.Device{}, map[int64]string{}, map[int64][]models.Device{}
	for _, d := range s.devices {
		s.byID[d.ID] = d
		s.lending[d.ProviderID] = append(s.lending[d.ProviderID], d)
	}
	for _, p := range s.providers {
		s.names[p.ID] = p.Name
	}
	return s
}

// with is the state when some have taken shares.
func (s state) with(taken []models.ShareView) state {
	s.shares = append(slices.Clip(s.shares), taken...)
	return s.redrawn(taken)
}

// without is the state when a workspace has given its shares back. A device
// that is there only because somebody holds it goes with its last share: then
// the state is not known.
func (s state) without(workspace int64) (without state, known bool) {
	var given []models.ShareView
	without = s
	without.shares = make([]models.ShareView, 0, len(s.shares))
	for _, share := range s.shares {
		if share.WorkspaceID != workspace {
			without.shares = append(without.shares, share)
			continue
		}
		given = append(given, share)
		if !s.byID[share.DeviceID].Present {
			return s, false
		}
	}
	return without.redrawn(given), true
}

// redrawn draws the nodes anew whose shares have changed.
func (s state) redrawn(changed []models.ShareView) state {
	if s.drawn == nil {
		return s
	}
	s.drawn = slices.Clone(s.drawn)
	touched, shares := map[int64]bool{}, s.placed(today)
	for _, share := range changed {
		touched[s.byID[share.DeviceID].ProviderID] = true
	}
	for i, p := range s.providers {
		if touched[p.ID] {
			s.drawn[i] = s.node(p, shares, today, everybody)
		}
	}
	return s
}

// draw prepares a state that many will decide over.
func (s state) draw() state {
	s.drawn = s.snapshot(today, everybody).Nodes
	return s
}

// everybody stands for no project in particular.
const everybody = 0

// vantage is from where a state is looked at.
type vantage int

const (
	today vantage = iota // as it is
	freed                // as it is, but nobody holds anything
	ever                 // nobody holds anything, and every machine lends
)

// snapshot turns the state into what placement decides over for a project.
func (s state) snapshot(from vantage, project int64) placement.Snapshot {
	if from == today && s.drawn != nil {
		return s.completed(project)
	}
	shares := s.placed(from)
	snap := placement.Snapshot{Nodes: make([]placement.Node, len(s.providers))}
	for i, p := range s.providers {
		snap.Nodes[i] = s.node(p, shares, from, project)
	}
	return snap
}

// completed is what was drawn, with what depends on who asks and when.
func (s state) completed(project int64) placement.Snapshot {
	snap := placement.Snapshot{Nodes: slices.Clone(s.drawn)}
	var shares map[int64][]placement.Share
	for i, p := range s.providers {
		if !p.Terms.Depend() {
			snap.Nodes[i].Unreachable = !s.reaches(p, s.lending[p.ID])
			continue
		}
		if shares == nil {
			shares = s.placed(today)
		}
		snap.Nodes[i] = s.node(p, shares, today, project)
	}
	return snap
}

// placed are the shares that count, by device.
func (s state) placed(from vantage) map[int64][]placement.Share {
	if from != today {
		return nil
	}
	shares := make(map[int64][]placement.Share, len(s.shares))
	for _, v := range s.shares {
		shares[v.DeviceID] = append(shares[v.DeviceID], placement.Share{
			Cores: v.Cores, MemoryMiB: v.MemoryMiB, Project: v.ProjectID, Holder: v.WorkspaceID})
	}
	return shares
}

// node is one provider. A GPU that is cut into instances stands there by
// these.
func (s state) node(p models.Provider, shares map[int64][]placement.Share, from vantage, project int64) placement.Node {
	devices := s.lending[p.ID]
	open, _ := p.Terms.Open(s.now)
	node := placement.Node{ID: p.ID, Name: p.Name, Accepting: p.State == models.ProviderOnline && open,
		Unreachable: !s.reaches(p, devices)}
	if from == ever {
		node.Accepting = p.State != models.ProviderOffline
	}
	byUUID := map[string]int64{}
	for _, d := range devices {
		byUUID[d.UUID] = d.ID
	}
	for _, d := range devices {
		if d.Applied == models.SharingMIG && d.ParentID == nil && len(shares[d.ID]) == 0 {
			continue
		}
		v := placement.Device{ID: d.ID, Index: int(d.Number), Model: d.Model, MemoryMiB: d.MemoryMiB, Cores: d.Cores,
			Exclusive: d.Exclusive(), Mixed: d.Mixed, Healthy: d.Present && d.Trouble.Empty(),
			Changing: from != ever && s.changing(d), NotLent: !lends(p.Terms, s.lender(d), project), Shares: shares[d.ID]}
		if p.Terms.Cores > 0 {
			v.Cores = min(v.Cores, p.Terms.Cores)
		}
		v.Single = d.Sharing == models.SharingMPS // a program reaches one daemon, and each GPU has its own
		if d.ParentID != nil {
			v.Parent = *d.ParentID
			s.boundInstance(&v, p.Terms, from)
		}
		for _, uuid := range d.Peers {
			if id, known := byUUID[uuid]; known {
				v.Peers = append(v.Peers, id)
			}
		}
		node.Devices = append(node.Devices, v)
	}
	return node
}
