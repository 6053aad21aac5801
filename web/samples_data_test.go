package web

import (
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

var (
	now   = time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	later = now.AddDate(0, 4, 0)
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func ptr[T any](v T) *T { return &v }

var (
	li   = models.User{ID: 2, Email: "li.wei@example.org", Name: "Li Wei", Version: 1, CreatedAt: ago(2000 * time.Hour)}
	root = models.User{ID: 1, Email: "admin@example.org", Name: "Anna Berg", Admin: true, Version: 3, CreatedAt: ago(4000 * time.Hour)}
)

var quota = models.Resources{GPUCores: 400, GPUMemoryMiB: 320 << 10, CPUMilli: 64000, MemoryMiB: 256 << 10, StorageMiB: 2 << 20}

var limit = models.Resources{GPUCores: 100, GPUMemoryMiB: 80 << 10, CPUMilli: 16000, MemoryMiB: 64 << 10, StorageMiB: 200 << 10}

var inUse = models.Resources{GPUCores: 30, GPUMemoryMiB: 24 << 10, CPUMilli: 4000, MemoryMiB: 20 << 10, StorageMiB: 12 << 10}

var asked = models.Resources{GPUCores: 50, GPUMemoryMiB: 40 << 10, CPUMilli: 4000, MemoryMiB: 20 << 10}

func gpu(n int64, shares ...Share) Device {
	for i, s := range shares {
		shares[i].Enforcement = models.EnforcedAdvisory
		if s.Cores == 100 {
			shares[i].Enforcement = models.EnforcedExclusive
		}
		if !s.Anonymous {
			shares[i].Utilisation = ptr(s.Cores * 7 / 10)
		}
	}
	d := Device{Sharing: models.SharingTimeSlicing, Utilisation: ptr(17 * n), ID: n + 1, Label: "GPU " + number(n), Model: "NVIDIA H100", MemoryMiB: 80 << 10, Shares: shares, Simulated: true, FreeCores: 100, FreeMemoryMiB: 80 << 10}
	for _, s := range shares {
		d.FreeCores -= s.Cores
		d.FreeMemoryMiB -= s.MemoryMiB
		d.Sharing = models.SharingTimeSlicing
		if s.Cores == 100 {
			d.Sharing = models.SharingExclusive
		}
	}
	return d
}

func sampleDevices() []Device {
	used := gpu(0,
		Share{Label: "vision · Li Wei", Cores: 50, MemoryMiB: 40 << 10, Colour: 1, Mine: true, Href: "/workspaces/5"},
		Share{Label: "vision · Zhao", Cores: 30, MemoryMiB: 24 << 10, Colour: 1, Href: "/workspaces/6"})
	used.MemoryUsedMiB = 31 << 10
	return []Device{
		used,
		gpu(1, Share{Label: "speech · Wang Fang", Cores: 100, MemoryMiB: 80 << 10, Colour: 2, Href: "/workspaces/7"}),
		gpu(2, Share{Cores: 60, MemoryMiB: 32 << 10, Anonymous: true}),
		gpu(3, Share{Label: "nlp · Chen", Cores: 25, MemoryMiB: 20 << 10, Colour: 3}, Share{Label: "maps · Okafor", Cores: 25, MemoryMiB: 20 << 10, Colour: 4}, Share{Label: "tabular · Ruiz", Cores: 20, MemoryMiB: 16 << 10, Colour: 5}, Share{Label: "audio · Sato", Cores: 20, MemoryMiB: 16 << 10, Colour: 6}),
		gpu(4),
	}
}

func myDevice() Device {
	d := gpu(0, Share{Label: "vision", Cores: 50, MemoryMiB: 40 << 10, Colour: 1, Mine: true}, Share{Cores: 30, MemoryMiB: 24 << 10, Anonymous: true})
	d.Provider, d.Enforcement = "gpu-node-01", models.EnforcedAdvisory
	return d
}

func newShare(n int64) Device {
	d := gpu(0, Share{Label: "vision · Zhao", Cores: 30, MemoryMiB: 24 << 10, Colour: 1}, Share{Cores: n, MemoryMiB: n * 800, New: true})
	d.Provider = "gpu-node-01"
	return d
}

func sampleRows() []WorkspaceRow {
	demand := models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 40 << 10, CPUMilli: 4000, MemoryMiB: 16 << 10}
	return []WorkspaceRow{
		{ID: 5, Name: "segmentation", State: models.StateRunning, ProjectID: 1, Project: "vision", Environment: "PyTorch 2.9", Demand: demand, Devices: []Device{myDevice()}, Simulated: true, CanOpen: true, CanStop: true, RequestedAt: ago(time.Hour)},
		{ID: 8, Name: "ablation-3", State: models.StateStarting, ProjectID: 1, Project: "vision", Environment: "PyTorch 2.9", Demand: demand, Progress: 40, CanStop: true, RequestedAt: ago(time.Minute)},
		{ID: 9, Name: "large-batch", State: models.StateQueued, ProjectID: 1, Project: "vision", Environment: "PyTorch 2.9", Demand: models.Demand{GPUs: 2, Cores: 100, CPUMilli: 8000, MemoryMiB: 32 << 10}, Position: 2, Reason: models.Say("2 GPUs with 100 cores are wanted on one machine; the best has 1."), CanStop: true, RequestedAt: ago(20 * time.Minute)},
	}
}

func endedRows() []WorkspaceRow {
	return []WorkspaceRow{
		{ID: 3, Name: "notebook", State: models.StateStopped, Project: "vision", Environment: "Python 3.12", Demand: models.Demand{CPUMilli: 1000, MemoryMiB: 2048}, EndedAt: ptr(ago(30 * time.Hour))},
		{ID: 4, Name: "export", State: models.StateFailed, Project: "vision", Environment: "Python 3.12", Demand: models.Demand{CPUMilli: 1000, MemoryMiB: 2048}, Reason: models.Say("The program ended with status 1."), EndedAt: ptr(ago(28 * time.Hour))},
	}
}

func sampleTarget() []models.Parameter {
	return []models.Parameter{
		{Name: "gpus", Value: "1", Origin: "member"}, {Name: "cores", Value: "50", Origin: "member"},
		{Name: "gpu_memory_mib", Value: "40960", Origin: "platform"}, {Name: "gpu_model", Value: "", Origin: "platform"},
		{Name: "cpu_milli", Value: "4000", Origin: "role"}, {Name: "memory_mib", Value: "20480", Origin: "project"},
		{Name: "shm_mib", Value: "2048", Origin: "environment"}, {Name: "path", Value: "/lab", Origin: "environment"},
		{Name: "HF_HOME", Value: "/public_model/huggingface", Origin: "project"},
	}
}

func sampleWorkspace(state models.WorkspaceState) WorkspaceView {
	v := WorkspaceView{
		Workspace: models.WorkspaceView{
			Workspace: models.Workspace{ID: 5, ProjectID: 1, Name: "segmentation", State: state, Progress: 65,
				Demand: models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 40 << 10, CPUMilli: 4000, MemoryMiB: 20 << 10},
				Target: sampleTarget(), RequestedAt: ago(90 * time.Minute), StartedAt: ptr(ago(84 * time.Minute)), Version: 4},
			ProjectName: "vision", UserName: "Li Wei", EnvironmentName: "PyTorch 2.9 · Python 3.12"},
		Events: []models.WorkspaceEvent{
			{At: ago(90 * time.Minute), State: models.StateRequested, Message: models.Say("Li Wei asked for 50 cores.")},
			{At: ago(85 * time.Minute), State: models.StateStarting, Message: models.Say("GPU 0 on gpu-node-01 was chosen.")},
			{At: ago(84 * time.Minute), State: models.StateRunning, Message: models.Say("The notebook answers.")}},
		Directories: []Directory{{Path: "/notebook/1/project_algorithm", Writable: true}, {Path: "/notebook/1/project_model", Writable: true},
			{Path: "/notebook/1/12", Writable: true}, {Path: "/public_dataset", Note: models.Say("One file in it has a rule of its own, which the mount cannot express.")}},
		CanStop: !state.Ended(), LaunchAgain: "/launch?project_id=1&environment_id=1", Simulated: true,
	}
	w := &v.Workspace
	switch state {
	case models.StateRunning:
		v.CanOpen, v.Devices = true, []Device{myDevice()}
		w.Limits = []models.Limit{{Resource: "cpu", Enforced: true, How: models.Say("control group, 4 CPU")}, {Resource: "memory", Enforced: true, How: models.Say("control group, 20 GiB")},
			{Resource: "gpu", How: models.Say("The GPU is simulated: there is nothing to limit.")}, {Resource: "storage", How: models.Say("Counted, not limited.")}}
	case models.StateStarting:
		v.Devices = []Device{myDevice()}
	case models.StateQueued:
		v.Position, w.Reason = 2, models.Say("GPU 0 has 30 of 50 cores free; 2 requests were there before.")
	case models.StateFailed:
		w.EndedAt, w.Reason = ptr(ago(80*time.Minute)), models.Say("The program ended with status 1 before it answered.")
		w.LogTail = "[W 14:01:02 ServerApp] Config option `token` not recognized\n[E 14:01:03 ServerApp] Could not bind to /run/weir/ws-5/notebook.sock: [Errno 98] Address already in use, and a rather long line that has to scroll inside its own box\nTraceback (most recent call last):\nOSError: [Errno 98] Address already in use"
	}
	return v
}

func sampleLaunch() LaunchView {
	return LaunchView{
		Form:     Form{Values: map[string]string{"project_id": "1", "version_constraints": "python>=3.11, torch", "gpus": "1", "cores": "50"}},
		Projects: []Option{{"1", "vision"}, {"2", "speech"}}, Project: "vision", Role: "algorithm engineer",
		GPUModels: []string{"NVIDIA H100"}, Meters: LimitMeters(inUse, asked, limit),
		Environments: []EnvironmentChoice{
			{ID: 1, Name: "PyTorch 2.9", Versions: "Python 3.12 · torch 2.9.0, jupyterlab 4.5.0", Matched: []models.Text{models.Say("matches both version constraints")}},
			{ID: 2, Name: "PyTorch 2.6", Versions: "Python 3.11 · torch 2.6.0", Matched: []models.Text{models.Say("matches both version constraints, older")}}},
		Mismatches: []EnvironmentMismatch{{"Python 3.9", []models.Text{models.Say("Python is 3.9, at least 3.11 is wanted")}}, {"JAX on TPU", []models.Text{models.Say("needs 200 cores, the limit is 100"), models.Say("has no torch")}}},
		Target:     sampleTarget(), Defaults: map[string]string{"cpu_milli": "4", "memory_mib": "20 GiB", "path": "/lab", "name": "PyTorch 2.9"},
		CanLaunch: true,
	}
}

func launchWith(d Decision) LaunchView {
	v := sampleLaunch()
	d.Simulated = true
	v.Decision = d
	v.Model, v.Needs = "/notebook/1/project_model/whisper", models.ModelNeeds{Environment: "PyTorch", VersionConstraints: "torch>=2", Minimum: models.Minimum{GPUs: 1}}
	return v
}

var granted = Decision{Outcome: models.OutcomeGranted, RequestedCores: 50, FreeCores: 50, Devices: []Device{newShare(50)}, Enforcement: models.EnforcedAdvisory,
	Explanation: models.Say("GPU 0 on gpu-node-01 leaves the least broken up of 9 candidates.")}

var short = Decision{Outcome: models.OutcomePartial, RequestedCores: 50, FreeCores: 30, Enforcement: models.EnforcedAdvisory,
	Reasons: []models.Text{models.Say("GPU 0 has 30 cores free, GPU 3 has 10.")},
	Fewer:   &Fewer{Cores: 30, GPUMemoryMiB: 24 << 10, Devices: []Device{newShare(30)}},
	Wait:    &Wait{Before: 2, Starts: Start{Text: models.Say("in about %d minutes", 14), At: now.Add(14 * time.Minute)}}}

func sampleProject() ProjectView {
	p := models.Project{ID: 1, Name: "vision", Description: "Segmentation of street scenes.", Quota: quota, StartsAt: ago(3000 * time.Hour), EndsAt: &later, Version: 7}
	member := models.MemberView{Member: models.Member{ID: 12, ProjectID: 1, UserID: 2, RoleID: 2}, UserName: "Li Wei", UserEmail: li.Email, RoleName: "algorithm engineer", Permission: "member", Limit: limit}
	over := member
	over.ID, over.UserName, over.UserEmail, over.Until = 13, "Zhao Min", "zhao@example.org", ptr(ago(100*time.Hour))
	return ProjectView{Project: p, InUse: inUse, Allocated: limit.Times(3), MyRole: "lead", CanEdit: true, CanManage: true, CanAdmit: true, CanAudit: true, Has: models.AllPermissions, CanLaunch: true,
		Roles:      []RoleRow{{models.Role{ID: 1, ProjectID: 1, Name: "lead", Permission: "manager", Limit: limit, Version: 1}, 1}, {models.Role{ID: 2, ProjectID: 1, Name: "algorithm engineer", Permission: "member", Limit: limit, Version: 1}, 2}},
		Members:    []MemberRow{{Member: member, InUse: inUse, Me: true}, {Member: over}},
		Workspaces: sampleRows()[:1]}
}

func sampleEnvironments() []models.Environment {
	return []models.Environment{
		{ID: 1, Name: "PyTorch 2.9", Language: "Python", LanguageVersion: "3.12", Versions: map[string]string{"torch": "2.9.0", "jupyterlab": "4.5.0", "numpy": "2.3.1"}, Minimum: models.Minimum{GPUs: 1, Cores: 10, GPUMemoryMiB: 8 << 10, CPUMilli: 1000, MemoryMiB: 4096}, Version: 1},
		{ID: 2, Name: "This machine's Jupyter", DiscoveredKey: ptr("/usr/bin/jupyter"), Language: "Python", LanguageVersion: "3.13", Versions: map[string]string{"jupyterlab": "4.4.2"}, Version: 1},
		{ID: 3, Name: "R 4.4", Language: "R", LanguageVersion: "4.4.1", Unavailable: models.Say("The program /opt/r/bin/jupyter is not there."), Version: 2},
	}
}

type sample struct {
	name string
	path string
	by   *models.User
	page templ.Component
}

// sampleAudit has each kind of entry.
func sampleAudit() AuditView {
	at, one := time.Date(2030, 1, 2, 9, 30, 0, 0, time.UTC), int64(1)
	return AuditView{Next: "/audit?cursor=8", CSV: "/api/v1/audit.csv?action=update", Filtered: true, Form: Form{Values: map[string]string{"action": "update"}}, Rows: []models.AuditEntry{
		{ID: 12, At: at, ActorID: &one, Actor: "anna@example.org", Address: "2001:db8:85a3:8d3:1319:8a2e:370:7348", Via: "session", Action: "update", Object: "project", ObjectID: 1,
			Before: `{"name":"vision","quota":{"gpu_cores":300,"cpu_milli":64000}}`, After: `{"name":"vision","quota":{"gpu_cores":400,"cpu_milli":64000}}`},
		{ID: 11, At: at, ActorID: &one, Actor: "anna@example.org", Address: "192.0.2.7", Via: "token ci", Action: "launch", Object: "workspace", ObjectID: 5,
			After: `{"name":"segmentation","gpus":1,"cores":50,"gpu_memory_mib":40960,"cpu_milli":4000,"memory_mib":16384,"path":"/lab","environment":"PyTorch"}`},
		{ID: 10, At: at, Actor: "weir reconciler", Via: "system", Action: "stop", Object: "workspace", ObjectID: 4, Before: `"running"`, After: `"stopped"`},
		{ID: 9, At: at, Actor: "weir admin", Via: "command", Action: "delete", Object: "seat", Before: `{"name":"old"}`}}}
}

func sampleAvailable() []AvailableRow {
	return []AvailableRow{
		{Demand: models.Demand{GPUs: 1, Cores: 50}, Outcome: models.OutcomeGranted},
		{Demand: models.Demand{GPUs: 1, Cores: 100}, Outcome: models.OutcomePartial, Reasons: []models.Text{models.Say("must not be empty")}},
		{Demand: models.Demand{GPUs: 2, Cores: 100}, Outcome: models.OutcomeDelayed},
		{Demand: models.Demand{GPUs: 4, Cores: 100}, Outcome: models.OutcomeRefused, Reasons: []models.Text{models.Say("must not be empty")}},
	}
}
