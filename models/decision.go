package models

import "time"

// Decision is the pool's decision on a demand for shares.
type Decision struct {
	// Outcome is granted; partial: fewer cores are available now; delayed: others must
	// release first; refused: no device can ever meet it.
	Outcome     string
	Grants      []Grant    // when granted; what is available, when partial
	Fewer       *Demand    // the demand that can be met now, when partial
	Explanation Text       // of the choice, or why there is none
	Reasons     []Text     // one per filter that rejected devices
	Waiting     int        // length of the queue
	Provider    ProviderID // when granted or partial
	EndsBy      *time.Time // by when what has a time limit ends; nil: never
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
	Reserved    *int64 // the grant of a reservation in which it is; nil: none
}

// Availability is the state of the pool at one moment, for decisions about new
// workspaces. Its functions read nothing else and change nothing.
type Availability struct {
	// WithGPUMemory is a demand with its GPU memory set if it does not specify it: in
	// proportion to the cores, on the smallest device that matches the model.
	WithGPUMemory func(Demand) Demand
	// Decide decides on the demand of a project for what is new and has a time limit; 0: none.
	Decide func(Project, Demand, time.Duration) Decision
}
