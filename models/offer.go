package models

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
