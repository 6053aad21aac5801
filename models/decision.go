package models

// Room is what a member may still hold in a project, and what bounds it.
type Room struct {
	Quota         Resources `json:"quota"`           // the project's
	HeldByProject Resources `json:"held_by_project"` // by all its workspaces
	Peak          Resources `json:"peak"`            // the member's role's
	HeldByMember  Resources `json:"held_by_member"`
}

// Left is the most that the member may additionally hold.
func (r Room) Left() Resources {
	a, b := r.Peak.Sub(r.HeldByMember).Floor(), r.Quota.Sub(r.HeldByProject).Floor()
	return Resources{min(a.GPUCores, b.GPUCores), min(a.GPUMemoryMiB, b.GPUMemoryMiB), min(a.CPUMilli, b.CPUMilli),
		min(a.MemoryMiB, b.MemoryMiB), min(a.StorageMiB, b.StorageMiB)}
}

// Answer is what the pool says to a demand for shares.
type Answer struct {
	Outcome     string     // granted; partial: fewer cores could be had now; delayed: others must release first; refused: no device can ever meet it
	Grants      []Grant    // where, when granted; what could be had, when partial
	Fewer       *Demand    // the demand that could be met now, when partial
	Explanation Text       // why this choice, or why none
	Reasons     []Text     // one line per filter that turned devices away
	Waiting     int        // requests that wait already
	Provider    ProviderID // where, when granted or partial
}

// ProviderID names a provider.
type ProviderID struct {
	ID   int64
	Name string
}

// Grant is a share that is, or would be, given.
type Grant struct {
	Device      Device
	Cores       int64
	MemoryMiB   int64
	Enforcement string
}
