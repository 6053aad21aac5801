package pool

import (
	"slices"

	"weir/models"
	"weir/pool/placement"
)

// anyProject stands for no project in particular.
const anyProject = 0

// horizon is how far ahead a snapshot is looked at.
type horizon int

const (
	asItIs       horizon = iota
	onceReleased         // nobody holds anything any more
	onceAllLend          // nobody holds anything any more, and every machine lends
)

// nodes turns the snapshot into what placement decides over for a project.
func (s snapshot) nodes(h horizon, project int64) placement.Snapshot {
	if h == asItIs && s.cachedNodes != nil {
		return s.completed(project)
	}
	shares := s.sharesByDevice(h)
	snap := placement.Snapshot{Nodes: make([]placement.Node, len(s.providers))}
	for i, p := range s.providers {
		snap.Nodes[i] = s.node(p, shares, h, project)
	}
	return snap
}

// completed are the cached nodes, with what depends on who asks and when.
func (s snapshot) completed(project int64) placement.Snapshot {
	snap := placement.Snapshot{Nodes: slices.Clone(s.cachedNodes)}
	var shares map[int64][]placement.Share
	for i, p := range s.providers {
		if !p.Terms.Conditional() {
			snap.Nodes[i].Unreachable = !s.reachable(p, s.devicesOf[p.ID])
			continue
		}
		if shares == nil {
			shares = s.sharesByDevice(asItIs)
		}
		snap.Nodes[i] = s.node(p, shares, asItIs, project)
	}
	return snap
}

// sharesByDevice are the shares that count.
func (s snapshot) sharesByDevice(h horizon) map[int64][]placement.Share {
	if h != asItIs {
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
func (s snapshot) node(p models.Provider, shares map[int64][]placement.Share, h horizon, project int64) placement.Node {
	devices := s.devicesOf[p.ID]
	open, _ := p.Terms.Open(s.now)
	node := placement.Node{ID: p.ID, Name: p.Name, Accepting: p.State == models.ProviderOnline && open,
		Unreachable: !s.reachable(p, devices)}
	if h == onceAllLend {
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
			Changing: h != onceAllLend && s.changing(d), NotLent: !lends(p.Terms, d, project), Shares: shares[d.ID]}
		if p.Terms.Cores > 0 {
			v.Cores = min(v.Cores, p.Terms.Cores)
		}
		v.Single = d.Sharing == models.SharingMPS // a program reaches one daemon, and each GPU has its own
		if d.ParentID != nil {
			v.Parent = *d.ParentID
			s.boundInstance(&v, p.Terms, h)
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

// lends asks the terms about a device; for any project, whether it is lent at
// all. Terms name devices by their physical GPUs.
func lends(t models.Terms, d models.Device, project int64) bool {
	if project == anyProject {
		t.Projects = nil
	}
	return t.Lends(d.PhysicalID(), project)
}

// notLent are the devices that their owners do not lend to a project, though
// to others.
func (s snapshot) notLent(project int64) (ids []int64) {
	terms := map[int64]models.Terms{}
	for _, p := range s.providers {
		terms[p.ID] = p.Terms
	}
	for _, d := range s.devices {
		if !lends(terms[d.ProviderID], d, project) {
			ids = append(ids, d.ID)
		}
	}
	return ids
}

// boundInstance keeps the instances of a GPU together within what its owner
// lends of it.
func (s snapshot) boundInstance(v *placement.Device, t models.Terms, h horizon) {
	if t.Cores == 0 {
		return
	}
	left := t.Cores
	for _, share := range s.shares {
		if sibling := s.byID[share.DeviceID]; h == asItIs && share.DeviceID != v.ID && sibling.ParentID != nil && *sibling.ParentID == v.Parent {
			left -= sibling.Cores // an instance is held whole
		}
	}
	if left < v.Cores {
		v.Cores = left
	}
	v.NotLent = v.NotLent || left < 1
}

// changing tells whether a device, or the GPU that it is an instance of, is
// being brought to another way of sharing.
func (s snapshot) changing(d models.Device) bool {
	if d.ParentID == nil {
		return d.Changing()
	}
	parent, known := s.byID[*d.ParentID]
	return !known || parent.Changing() || s.recut(parent)
}

// recut tells whether a GPU's instances are not those of its layout, or
// whether one that is there no more is still held: until its holder has left,
// the instances that took its place are not to be lent beside it.
func (s snapshot) recut(parent models.Device) bool {
	missing := slices.Clone(parent.Layout)
	for _, d := range s.devices {
		if d.ParentID == nil || *d.ParentID != parent.ID {
			continue
		}
		if !d.Present { // it is known only because somebody holds it
			return true
		}
		at := slices.Index(missing, d.Profile)
		if at < 0 {
			return true
		}
		missing = slices.Delete(missing, at, at+1)
	}
	return false
}
