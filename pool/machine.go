package pool

import (
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/placement"
)

// machine is a provider with its devices and their open shares. It is not
// changed.
type machine struct {
	models.Provider
	devices   []models.Device
	shares    []store.ShareView
	reserved  []models.ReservedView // that has not ended when it was read
	nodes     [horizonCount]*placement.Node
	until     *time.Time // when its hours begin or end, or a reservation ends; nil: never
	simulated bool       // it has no real GPU
}

// horizon is the state in which a machine is considered.
type horizon int

const (
	asItIs       horizon = iota
	onceReleased         // no share is in use any more
	onceAllLend          // no share is in use any more, and every machine lends
	horizonCount
)

// byID finds one of the machine's devices.
func (m *machine) byID(id int64) (d models.Device, known bool) {
	i := slices.IndexFunc(m.devices, func(d models.Device) bool { return d.ID == id })
	if i < 0 {
		return d, false
	}
	return m.devices[i], true
}

// lends reports whether the terms lend a device to any project. Terms name
// devices by their physical GPUs.
func (m *machine) lends(d models.Device) bool {
	t := m.Terms
	t.Projects = nil
	return t.Lends(d.PhysicalID(), 0)
}

// lendsInstance reports whether the whole of an instance is within what its owner lends of the GPU, beside
// the other instances in use.
func (m *machine) lendsInstance(d models.Device, h horizon) bool {
	left := m.Terms.Cores
	for _, share := range m.shares {
		if sibling, known := m.byID(share.DeviceID); known && h == asItIs && share.DeviceID != d.ID && sibling.ParentID != nil &&
			*sibling.ParentID == *d.ParentID {
			left -= sibling.Cores
		}
	}
	return m.Terms.Cores == 0 || d.Cores <= left
}

// changing reports whether the sharing mode of a device, or of the GPU that it
// is an instance of, is being changed.
func (m *machine) changing(d models.Device) bool {
	if d.ParentID == nil {
		return d.Changing()
	}
	parent, known := m.byID(*d.ParentID)
	return !known || parent.Changing() || m.repartitioned(parent)
}

// repartitioned reports whether a GPU's instances are not those of its layout, or
// whether one that is gone is still in use: until it is released, the
// instances that took its place are not to be lent beside it.
func (m *machine) repartitioned(parent models.Device) bool {
	missing := slices.Clone(parent.Layout)
	for _, d := range m.devices {
		if d.ParentID == nil || *d.ParentID != parent.ID {
			continue
		}
		if !d.Present { // it is known only because it is in use
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
