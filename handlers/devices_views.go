package handlers

import (
	"slices"
	"strconv"

	"weir/models"
	"weir/pool"
	"weir/web"
)

// deviceView is a device as the pages draw it.
func deviceView(d pool.DeviceView, me int64) web.Device {
	v := web.Device{ID: d.ID, Label: deviceLabel(d.Device), Model: d.Model, MemoryMiB: d.MemoryMiB, FreeCores: d.FreeCores,
		FreeMemoryMiB: d.FreeMemoryMiB, Sharing: d.Sharing, State: deviceState(d), Trouble: d.Trouble,
		Lost: d.ProviderState == models.ProviderLost, Simulated: d.Simulated, Mixed: d.Mixed}
	if d.ParentID != nil {
		v.Sharing, v.Size = models.SharingMIG, d.Cores
	}
	if d.Measured != nil && !v.Lost {
		v.Utilisation, v.MemoryUsedMiB = &d.Measured.Utilisation, d.Measured.MemoryUsedMiB
	}
	for _, s := range d.Shares {
		share := web.Share{Cores: s.Cores, MemoryMiB: s.MemoryMiB, Anonymous: s.Anonymous, Colour: web.Colour(s.ProjectID),
			Enforcement: s.Enforcement, EndsAt: s.EndsAt, EndReason: s.EndReason, Utilisation: s.Utilisation}
		if len(d.Shares) == 1 && share.Utilisation == nil {
			share.Utilisation = v.Utilisation
		}
		if !s.Anonymous {
			share.Label = s.ProjectName + " · " + s.UserName
			share.Mine = s.UserID == me
			share.Href = s.Kind.Path(s.ObjectID)
		}
		v.Shares = append(v.Shares, share)
	}
	return v
}

func deviceLabel(d models.Device) string {
	if d.ParentID != nil {
		return "MIG " + d.Profile
	}
	return "GPU " + strconv.FormatInt(d.Number, 10)
}

// deviceState is the reason that a device gets no new shares; empty if it can.
func deviceState(d pool.DeviceView) models.Text {
	switch {
	case d.ProviderState == models.ProviderLost:
		return models.Say("lost")
	case d.ProviderState == models.ProviderOffline:
		return models.Say("not in the pool")
	case !d.Present:
		return models.Say("not reported")
	case !d.Trouble.Empty():
		return models.Say("unhealthy")
	case d.Changing():
		return models.Say("changing")
	case !d.Lent:
		return models.Say("not lent")
	case d.ProviderState != models.ProviderOnline:
		return models.Say("not accepting new shares")
	}
	return models.Text{}
}

// devicesAt are a machine's devices, in the order in which they are drawn.
func devicesAt(p pool.ProviderView, me int64) (list []web.Device) {
	instances := map[int64]int{}
	for _, d := range p.Devices {
		if d.ParentID != nil {
			instances[*d.ParentID]++
		}
	}
	for _, d := range p.Devices {
		v := deviceView(d, me)
		if len(v.Shares) == 0 {
			v.Instances = instances[d.ID]
		}
		if !p.Lends && v.State.Empty() {
			v.State = models.Say("not lent now")
		}
		list = append(list, v)
	}
	return list
}

// providerView is a machine as the pages draw it.
func providerView(p pool.ProviderView, me int64) web.Provider {
	v := web.Provider{ID: p.ID, Name: p.Name, State: p.State, SeenAt: p.SeenAt, Devices: devicesAt(p, me), Reason: p.Reason,
		RecallAt: p.RecallAt, Lends: p.Lends, Until: p.Until, NewCode: p.ReportedCode, Manage: p.Manage}
	v.Simulated = anySimulated(v.Devices)
	for _, d := range p.Devices {
		v.NVLink = v.NVLink || len(d.Peers) > 0
	}
	return v
}

// devicesOf lists the devices with shares of a holder.
func devicesOf(view pool.View, holder, me int64) (list []web.Device) {
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			for _, s := range d.Shares {
				if !s.Anonymous && s.HolderID == holder {
					v := deviceView(d, me)
					v.Provider, v.Enforcement = p.Name, s.Enforcement
					list = append(list, v)
				}
			}
		}
	}
	return list
}

func anySimulated(devices []web.Device) bool {
	return slices.ContainsFunc(devices, func(d web.Device) bool { return d.Simulated })
}
