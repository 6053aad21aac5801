package handlers

import (
	"net/url"
	"sort"
	"strconv"
	"strings"

	"weir/models"
	"weir/pool"
	"weir/web"
	"weir/workspaces"
)

// deviceView is a device as the pages draw it.
func deviceView(d pool.DeviceView, me int64) web.Device {
	v := web.Device{ID: d.ID, Label: deviceLabel(d.Device), Model: d.Model, MemoryMiB: d.MemoryMiB, FreeCores: d.FreeCores, FreeMemoryMiB: d.FreeMemoryMiB,
		Sharing: d.Sharing, State: deviceState(d), Trouble: d.Trouble, Lost: d.ProviderState == models.ProviderLost, Simulated: d.Simulated, Mixed: d.Mixed}
	if d.ParentID != nil {
		v.Sharing, v.Size = models.SharingMIG, d.Cores
	}
	if d.Measured != nil && !v.Lost {
		v.Utilisation, v.MemoryUsedMiB = &d.Measured.Utilisation, d.Measured.MemoryUsedMiB
	}
	for _, s := range d.Shares {
		share := web.Share{Cores: s.Cores, MemoryMiB: s.MemoryMiB, Anonymous: s.Anonymous, Colour: web.Colour(s.ProjectID),
			Enforcement: s.Enforcement, EndsAt: s.EndsAt, EndReason: s.EndReason}
		if !s.Anonymous {
			share.Label = s.ProjectName + " · " + s.UserName
			share.Mine = s.UserID == me
			share.Href = path("workspaces", s.WorkspaceID)
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

// deviceState says why nothing new goes to a device; empty where something
// may.
func deviceState(d pool.DeviceView) models.Text {
	switch {
	case d.ProviderState == models.ProviderLost:
		return models.Say("lost")
	case d.ProviderState == models.ProviderOffline:
		return models.Say("not in the pool")
	case !d.Present:
		return models.Say("not reported")
	case !d.Trouble.Empty():
		return models.Say("in trouble")
	case d.Changing():
		return models.Say("being changed")
	case !d.Lent:
		return models.Say("not lent")
	case d.ProviderState != models.ProviderOnline:
		return models.Say("lends nothing new")
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

// devicesOf are the devices on which a workspace holds a share.
func devicesOf(view pool.View, workspace, me int64) (list []web.Device) {
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			for _, s := range d.Shares {
				if !s.Anonymous && s.WorkspaceID == workspace {
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
	for _, d := range devices {
		if d.Simulated {
			return true
		}
	}
	return false
}

// fillLaunch puts a preview into the launch page.
func fillLaunch(v *web.LaunchView, p workspaces.Preview, view pool.View) {
	v.GPUModels = gpuModels(view)
	v.Meters = web.PeakMeters(p.Room.HeldByMember, p.Target.Demand.Resources(), p.Room.Peak)
	for _, m := range p.Fitting {
		v.Environments = append(v.Environments, web.EnvironmentChoice{ID: m.Environment.ID, Name: m.Environment.Name,
			Versions: versionsOf(m.Environment), Matched: m.Matched})
	}
	for _, m := range p.Refused {
		v.Refused = append(v.Refused, web.EnvironmentRefused{Name: m.Environment.Name, Reasons: m.Reasons})
	}
	v.Target = p.Target.Parameters
	v.Defaults = map[string]string{}
	for _, t := range p.Target.Parameters {
		v.Defaults[t.Name] = t.Value
		if n, err := strconv.ParseInt(t.Value, 10, 64); err == nil {
			v.Defaults[t.Name] = models.Quantity(countName(t.Name), n)
		}
	}
	if p.Chosen.ID != 0 && p.Answer.Outcome != "" {
		v.Answer = answerView(p.Answer, p.Target.Demand, view)
	}
}

func answerView(a models.Answer, d models.Demand, view pool.View) web.Answer {
	v := web.Answer{Outcome: a.Outcome, AskedCores: d.GPUs * d.Cores, Explanation: a.Explanation, Reasons: a.Reasons}
	devices := grantedDevices(a, view)
	v.Simulated = anySimulated(devices)
	if len(a.Grants) > 0 {
		v.Enforcement = a.Grants[0].Enforcement
	}
	switch a.Outcome {
	case models.OutcomeGranted:
		v.Devices, v.FreeCores = devices, v.AskedCores
	case models.OutcomePartial:
		v.FreeCores = a.Fewer.GPUs * a.Fewer.Cores
		v.Fewer = &web.Fewer{Cores: v.FreeCores, GPUMemoryMiB: a.Fewer.GPUs * a.Fewer.GPUMemoryMiB, Devices: devices}
		v.Wait = &web.Wait{Before: a.Waiting, Why: a.Explanation}
	case models.OutcomeDelayed:
		v.Wait = &web.Wait{Before: a.Waiting, Why: a.Explanation}
	}
	return v
}

// grantedDevices draws where an answer's shares would lie.
func grantedDevices(a models.Answer, view pool.View) (list []web.Device) {
	for _, g := range a.Grants {
		for _, p := range view.Providers {
			for _, d := range p.Devices {
				if d.ID != g.Device.ID {
					continue
				}
				v := deviceView(d, 0)
				v.State = models.Text{}
				v.Provider, v.Enforcement = p.Name, g.Enforcement
				v.Shares = append(v.Shares, web.Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, New: true})
				v.FreeCores, v.FreeMemoryMiB = max(v.FreeCores-g.Cores, 0), max(v.FreeMemoryMiB-g.MemoryMiB, 0)
				list = append(list, v)
			}
		}
	}
	return list
}

func gpuModels(view pool.View) []string {
	seen := map[string]bool{}
	var list []string
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			if !seen[d.Model] {
				seen[d.Model] = true
				list = append(list, d.Model)
			}
		}
	}
	sort.Strings(list)
	return list
}

// versionsOf words what matters of an environment's versions.
func versionsOf(e models.Environment) string {
	parts := []string{e.Language + " " + e.LanguageVersion}
	tools := make([]string, 0, len(e.Versions))
	for tool := range e.Versions {
		tools = append(tools, tool)
	}
	sort.Strings(tools)
	for _, tool := range tools {
		parts = append(parts, tool+" "+e.Versions[tool])
	}
	return strings.Join(parts, " · ")
}

// launchAgain is the launch form with what the member asked for before.
func launchAgain(w models.Workspace) string {
	q := url.Values{"project_id": {strconv.FormatInt(w.ProjectID, 10)}, "environment_id": {strconv.FormatInt(w.EnvironmentID, 10)}, "name": {w.Name}}
	var env []string
	for _, p := range w.Target {
		if p.Origin != workspaces.OriginMember {
			continue
		}
		if name, ok := strings.CutPrefix(p.Name, "env."); ok {
			env = append(env, name+"="+p.Value)
			continue
		}
		value := p.Value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			value = models.Quantity(countName(p.Name), n)
		}
		q.Set(p.Name, value)
	}
	if len(env) > 0 {
		q.Set("env", strings.Join(env, "\n"))
	}
	return "/launch?" + q.Encode()
}
