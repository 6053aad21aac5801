package web

import (
	"time"

	"weir/models"
)

// migDevices are a GPU with two MIG instances.
func migDevices() []Device {
	whole := gpu(5)
	whole.Sharing, whole.Instances = models.SharingMIG, 2
	half, rest := gpu(5, Share{Cores: 42, MemoryMiB: 40 << 10, Anonymous: true}), gpu(5)
	half.Label, half.Size, half.Sharing, half.MemoryMiB, half.FreeMemoryMiB, half.FreeCores = "MIG 3g.40gb", 42, models.SharingMIG, 40<<10, 0, 0
	rest.Label, rest.Size, rest.Sharing, rest.MemoryMiB, rest.FreeMemoryMiB, rest.FreeCores = "MIG 4g.40gb", 57, models.SharingMIG, 40<<10, 40<<10, 57
	return []Device{whole, half, rest}
}

func lostDevices() []Device {
	d := gpu(0, Share{Label: "vision · Li Wei", Cores: 50, MemoryMiB: 40 << 10, Colour: 1, Mine: true, Href: "/workspaces/5"})
	e := gpu(1)
	for _, x := range []*Device{&d, &e} {
		x.Lost, x.State, x.FreeCores, x.FreeMemoryMiB, x.Utilisation = true, models.Say("lost"), 0, 0, nil
	}
	return []Device{d, e}
}

func sampleProviders() []Provider {
	sick := gpu(6)
	sick.State, sick.FreeCores, sick.Trouble = models.Say("unhealthy"), 0, models.Say("the driver reports: %s", "XID 79")
	return []Provider{
		{ID: 1, Name: "gpu-node-01", State: "online", SeenAt: now, Simulated: true, NVLink: true, Lends: true, Until: ptr(now.Add(4 * time.Hour)), Devices: append(append(sampleDevices(), migDevices()...), sick)},
		{ID: 2, Name: "gpu-node-02", State: "lost", SeenAt: ago(9 * time.Minute), Devices: lostDevices(), Lends: true, Reason: models.Say("no heartbeat for %d seconds", 21)},
		{ID: 3, Name: "gpu-node-03", State: "recalled", SeenAt: now, Devices: []Device{gpu(0)}, Lends: true, RecallAt: ptr(now.Add(time.Hour))},
		{ID: 4, Name: "gpu-node-04", State: "pending", SeenAt: now, Devices: []Device{gpu(0)}, Lends: true, NewCode: "7QXK-93ZD-11MW-A0PE"},
		{ID: 5, Name: "desk-17", State: "online", SeenAt: now, Devices: []Device{gpu(0)}, Until: ptr(now.Add(4 * time.Hour))},
		{ID: 6, Name: "desk-18", State: "draining", SeenAt: now, Lends: true},
	}
}

func samplePool() PoolView {
	return PoolView{
		Providers: sampleProviders(), GPUs: 1300, Cores: 130000, InUse: 85212, Computing: 44, Placed: 18204, Changed: &now,
		Queue: []QueueRow{{Position: 1, Label: "nlp · Wang Fang · notebook", Href: "/workspaces/9", GPUs: 2, Cores: 50, Why: models.Say("2 GPUs with 50 cores on one machine: the best has 1."), Since: ago(14 * time.Minute),
			Starts: models.Say("in about %d minutes", 14), Estimated: true},
			{Position: 2, Anonymous: true, GPUs: 1, Cores: 30, Why: models.Say("Project quota: 80 of 80 cores are held."), Since: ago(3 * time.Minute), Starts: models.Say("within a minute"), Behind: models.Say("Behind an older request.")}},
		Decisions: []DecisionRow{{At: now, Who: "Li Wei", Outcome: "granted", Demand: models.Say("30 cores on gpu-node-01 GPU 0."), Explanation: models.Say("Least fragmentation of 9 candidates; GPU 4 would have split an idle GPU.")},
			{At: ago(time.Minute), Who: "Wang Fang", Outcome: "delayed", Demand: models.Say("2 × 50 cores."), Explanation: models.Say("3 GPUs too full, 8 on other machines alone.")},
			{At: ago(2 * time.Minute), Outcome: "refused", Demand: models.Say("200 cores."), Explanation: models.Say("The role's limit is 100.")}},
		Unmet:   []UnmetRow{{Model: "NVIDIA H100", GPUs: 8, Cores: 100, Waiting: 2, Refused: 5, Oldest: ptr(ago(3 * time.Hour))}, {GPUs: 1, Cores: 30, Waiting: 1}},
		Offered: []OfferedTo{{GPUCode: "7QXK-93ZD-11MW-A0PE", Name: "desk-19", Until: now.Add(9 * time.Minute)}},
	}
}

func sampleProvider(manage bool) ProviderView {
	p := sampleProviders()[0]
	p.Manage = manage
	terms := models.Terms{Cores: 80, Devices: []int64{1, 2}, Projects: []int64{1}, Hours: []models.Window{{Days: []int{1, 2, 3}, From: "18:00", To: "08:00"}}, TimeZone: "Asia/Shanghai", GraceMinutes: 30}
	v := ProviderView{Provider: p, Owner: "Anna Berg", Since: ptr(ago(900 * time.Hour)), Shares: 9, Users: 4,
		Facts: models.Provider{ID: 1, Name: p.Name, State: p.State, SeenAt: now, Machine: "6f1c0a93be2277d0c4", Agent: true, GPUCode: "7QXK-93ZD-11MW-A0PE", Address: "10.0.3.17", Terms: terms, Version: 4},
		Form: Form{Version: 4, Values: map[string]string{"name": p.Name, "owner_id": "anna@example.org", "cores": "80", "devices.1": "1", "devices.2": "1", "projects.1": "1", "time_zone": "Asia/Shanghai",
			"grace_minutes": "30", "hours[0].days.1": "1", "hours[0].days.2": "1", "hours[0].from": "18:00", "hours[0].to": "08:00"}},
		Recall: Form{Version: 4}, MoreProjects: true,
		Devices: []Choice{{1, "GPU 0"}, {2, "GPU 1"}, {3, "GPU 2"}}, Projects: []Choice{{1, "vision"}, {2, "speech"}}}
	return v
}

func changedProvider() ProviderView {
	v := sampleProvider(true)
	v.Facts.ReportedCode, v.Facts.RecallAt, v.Facts.Draining, v.Since, v.Own, v.Shares = "11MW-A0PE-7QXK-93ZD", ptr(now.Add(time.Hour)), true, nil, true, 0
	v.Act = v.Act.Refuse(models.Conflict("Somebody else has changed the provider."))
	v.Recall.Values = map[string]string{"recall.grace_minutes": "-4"}
	v.Recall = v.Recall.Refuse(models.Invalid("recall.grace_minutes", "must be from 0 to %d minutes", 10080))
	v.Form = v.Form.Refuse(models.InvalidFields(models.Field{Name: "hours[0].days", Reason: models.Say("must include at least one day of the week, from 0 (Sunday) to 6 (Saturday)")},
		models.Field{Name: "hours[0].from", Reason: models.Say("must be a time of day such as 09:00")}, models.Field{Name: "cores", Reason: models.Say("must be at most %d", 100)},
		models.Field{Name: "devices", Reason: models.Say("device %d is not a GPU of this provider", 9)}))
	return v
}

// sampleSlots are an hour of measurements with a silence in it.
func sampleSlots() (slots []Slot) {
	for i := range int64(120) {
		s := Slot{At: ago(time.Hour - time.Duration(i)*30*time.Second), Samples: 6}
		s.Mean = Amounts{20 + i%40, (20 + i/4) << 10, 40 + i%9, (180 + i) * 1000}
		s.Most = Amounts{30 + i%60, (21 + i/4) << 10, 42 + i%9, (230 + i) * 1000}
		if i > 50 && i < 62 || i == 64 {
			s = Slot{At: s.At}
		}
		slots = append(slots, s)
	}
	return slots
}

func sampleDevice() DeviceView {
	d := myDevice()
	d.Enforcement = ""
	return DeviceView{Device: d, Provider: "gpu-node-01", ProviderID: 1, State: "online", CanEdit: true, Form: Form{Values: map[string]string{"mixed": "1", "sharing": "time-slicing"}, Version: 2},
		Facts: models.Device{Model: "NVIDIA H100", MemoryMiB: 80 << 10, UUID: "GPU-5f7c1b60-77aa-4b07-9d6d-3e1c3f6a2b11", PCI: "0000:1b:00.0", Driver: "550.54.15", Architecture: "Hopper", Present: true, Simulated: true,
			Sharing: "mps", Applied: "", SharingError: "the compute mode of a GPU may be set by root only", ECC: "on", ECCErrors: 2, XID: 79, XIDAt: ptr(ago(time.Hour)), MIGProfiles: []string{"1g.10gb", "3g.40gb"}, Trouble: models.Say("the driver reports: %s", "XID 79")},
		Peers: []Link{{"GPU 1", "/pool/devices/2"}, {"GPU 2", "/pool/devices/3"}}, Span: "hour", Slots: sampleSlots(), From: ago(time.Hour), To: now,
		Measured: &models.DeviceState{At: now, Utilisation: 71, MemoryUsedMiB: 31 << 10, Temperature: 54, PowerMW: 312000, Processes: []models.GPUProcess{{PID: 4711, Name: "python3", MemoryMiB: 30 << 10}}},
		History:  []ShareRow{{Label: "vision · Li Wei · segmentation", Href: "/workspaces/5", Cores: 50, MemoryMiB: 40 << 10, Enforcement: "advisory", From: ago(time.Hour)}, {Cores: 100, MemoryMiB: 80 << 10, Enforcement: "exclusive", From: ago(9 * time.Hour), Until: ptr(ago(3 * time.Hour))}}}
}

func sampleInstance() DeviceView {
	return DeviceView{Device: migDevices()[1], Provider: "gpu-node-01", ProviderID: 1, State: "lost", Span: "day", Parent: &Link{"GPU 5", "/pool/devices/6"},
		Facts: models.Device{Model: "NVIDIA H100", NUMA: -1, ECC: "off", ParentID: ptr(int64(6)), Profile: "3g.40gb", Sharing: "mig"}}
}

func samplePlanning() PlanningView {
	points := func(capacity, inUse, waiting int64) (list []ReplayPoint) {
		for i := range int64(40) {
			list = append(list, ReplayPoint{At: ago(time.Duration(40-i) * time.Hour), Capacity: capacity, InUse: min(capacity, inUse+10*i), Waiting: max(0, waiting-20*i)})
		}
		return list
	}
	return PlanningView{Form: Form{Values: map[string]string{"add": "h100:8", "days": "30"}}, Policies: []Option{{"", "weir"}, {"fgd", "fgd"}}, Done: true, Added: "h100:8", Days: 30, Requests: 912,
		Assumed: 12, AssumedDuration: 40 * time.Minute,
		Now:  Replay{Machines: 2, GPUs: 12, Placed: 880, Waited: 120, Refused: 32, Median: 12 * time.Minute, P90: 3 * time.Hour, Max: 31 * time.Hour, GPUHours: 5120, InUse: 71, From: ago(40 * time.Hour), To: now, Points: points(1200, 700, 400)},
		Then: Replay{Machines: 3, GPUs: 20, Placed: 910, Waited: 11, Refused: 2, P90: time.Minute, Max: time.Hour, GPUHours: 6120, InUse: 48, From: ago(40 * time.Hour), To: now, Points: points(2000, 800, 60)[:30]}}
}

// endingWorkspace holds a share that has to end, and one on a lost machine.
func idleWorkspace() WorkspaceView {
	v := sampleWorkspace(models.StateRunning)
	v.Idleness = &Idleness{Limit: time.Hour, Known: true, WorkedAt: now.Add(-52 * time.Minute), Signal: "code", Reminded: true, StopsAt: ptr(now.Add(8 * time.Minute))}
	return v
}

func endingWorkspace() WorkspaceView {
	v := sampleWorkspace(models.StateRunning)
	endingShare, lost := myDevice(), lostDevices()[0]
	endingShare.Shares[0].EndsAt, endingShare.Shares[0].EndReason = ptr(now.Add(time.Hour)), models.Say("the owner of %s has recalled its GPUs", "gpu-node-01")
	lost.Provider = "gpu-node-02"
	v.Devices = []Device{endingShare, lost}
	return v
}
