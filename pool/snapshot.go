package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/pool/placement"
)

// snapshot is what the scheduler knows at one moment, for decisions and for
// pages. It is not changed: what follows from it is another.
type snapshot struct {
	now         time.Time
	reachable   func(models.Provider, []models.Device) bool
	providers   []models.Provider
	devices     []models.Device
	shares      []models.ShareView
	byID        map[int64]models.Device
	names       map[int64]string
	devicesOf   map[int64][]models.Device // by provider
	cachedNodes []placement.Node          // as it is, for any project, in the order of providers; nil: not built yet
}

func (s *Scheduler) read(q *models.Queries) (snap snapshot, err error) {
	snap.reachable = s.providers.Reachable
	if err := snap.readMachines(q); err != nil {
		return snap, err
	}
	snap.shares, err = q.OpenShares()
	return snap, err
}

// readMachines reads all but the shares.
func (s *snapshot) readMachines(q *models.Queries) (err error) {
	s.now = q.Now()
	if s.providers, err = q.Providers(); err != nil {
		return err
	}
	if s.devices, err = q.Devices(); err != nil {
		return err
	}
	s.byID, s.names, s.devicesOf = map[int64]models.Device{}, map[int64]string{}, map[int64][]models.Device{}
	for _, d := range s.devices {
		s.byID[d.ID] = d
		s.devicesOf[d.ProviderID] = append(s.devicesOf[d.ProviderID], d)
	}
	for _, p := range s.providers {
		s.names[p.ID] = p.Name
	}
	return nil
}

// withShares is the snapshot when some have taken shares.
func (s snapshot) withShares(taken []models.ShareView) snapshot {
	s.shares = append(slices.Clip(s.shares), taken...)
	return s.rebuilt(taken)
}

// withoutWorkspace is the snapshot when a workspace has given its shares back.
// A device that is there only because somebody holds it goes with its last
// share: then the snapshot is not known.
func (s snapshot) withoutWorkspace(workspace int64) (after snapshot, known bool) {
	var given []models.ShareView
	after = s
	after.shares = make([]models.ShareView, 0, len(s.shares))
	for _, share := range s.shares {
		if share.WorkspaceID != workspace {
			after.shares = append(after.shares, share)
			continue
		}
		given = append(given, share)
		if !s.byID[share.DeviceID].Present {
			return s, false
		}
	}
	return after.rebuilt(given), true
}

// rebuilt builds the cached nodes anew whose shares have changed.
func (s snapshot) rebuilt(changed []models.ShareView) snapshot {
	if s.cachedNodes == nil {
		return s
	}
	s.cachedNodes = slices.Clone(s.cachedNodes)
	touched, shares := map[int64]bool{}, s.sharesByDevice(asItIs)
	for _, share := range changed {
		touched[s.byID[share.DeviceID].ProviderID] = true
	}
	for i, p := range s.providers {
		if touched[p.ID] {
			s.cachedNodes[i] = s.node(p, shares, asItIs, anyProject)
		}
	}
	return s
}

// withNodes prepares a snapshot over which many will decide.
func (s snapshot) withNodes() snapshot {
	s.cachedNodes = s.nodes(asItIs, anyProject).Nodes
	return s
}
