package models

// Room is what a member may additionally use in a project, and its bounds.
type Room struct {
	Quota         Resources `json:"quota"`           // of the project
	HeldByProject Resources `json:"held_by_project"` // by all workspaces
	Peak          Resources `json:"peak"`            // of the member's role
	HeldByMember  Resources `json:"held_by_member"`
}

// Left is the most that the member may additionally use.
func (r Room) Left() Resources {
	a, b := r.Peak.Sub(r.HeldByMember).Floor(), r.Quota.Sub(r.HeldByProject).Floor()
	return Resources{min(a.GPUCores, b.GPUCores), min(a.GPUMemoryMiB, b.GPUMemoryMiB), min(a.CPUMilli, b.CPUMilli),
		min(a.MemoryMiB, b.MemoryMiB), min(a.StorageMiB, b.StorageMiB)}
}

// Answer is the pool's decision on a demand for shares.
type Answer struct {
	Outcome     string     // granted; partial: fewer cores are available now; delayed: others must release first; refused: no device can ever meet it
	Grants      []Grant    // when granted; what is available, when partial
	Fewer       *Demand    // the demand that can be met now, when partial
	Explanation Text       // of the choice, or why there is none
	Reasons     []Text     // one per filter that rejected devices
	Waiting     int        // length of the queue
	Provider    ProviderID // when granted or partial
}

// ProviderID is a provider's id and name.
type ProviderID struct {
	ID   int64
	Name string
}

// Grant is a share that is, or would be, allocated.
type Grant struct {
	Device      Device
	Cores       int64
	MemoryMiB   int64
	Enforcement string
}
