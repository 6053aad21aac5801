package models

import "time"

// Provider is a machine that lends GPUs.
type Provider struct {
	ID        int64     `json:"id"`
	Name      string    `json:"name"`
	State     string    `json:"state"` // pending, online, draining, offline, lost, recalled
	SeenAt    time.Time `json:"seen_at"`
	Version   int64     `json:"version"`
	CreatedAt time.Time `json:"created_at"`
}

// States of a provider that this form of the pool uses.
const (
	ProviderOnline  = "online"
	ProviderOffline = "offline"
)

// Device is a physical GPU of a provider.
type Device struct {
	ID           int64     `json:"id"`
	ProviderID   int64     `json:"provider_id"`
	UUID         string    `json:"uuid"`
	Number       int64     `json:"number"` // on its machine, from 0
	Minor        int64     `json:"minor"`  // /dev/nvidia{Minor}
	Model        string    `json:"model"`
	MemoryMiB    int64     `json:"memory_mib"`
	Architecture string    `json:"architecture"`
	PCI          string    `json:"pci"`
	Driver       string    `json:"driver"`
	Simulated    bool      `json:"simulated"`
	Present      bool      `json:"present"`   // the driver still reports it
	Exclusive    bool      `json:"exclusive"` // one holder at a time
	Mixed        bool      `json:"mixed"`     // an administrator allowed fractions of different projects
	Version      int64     `json:"version"`
	CreatedAt    time.Time `json:"created_at"`
}

// How a share is enforced. Nothing is claimed that does not hold.
const (
	EnforcedExclusive = "exclusive" // the whole device, visible to its holder alone
	EnforcedAdvisory  = "advisory"  // stated to the holder, not limited by anything
)

// Share is a part of a device that a workspace holds for [From, Until);
// Until is nil while it is held.
type Share struct {
	ID          int64
	DeviceID    int64
	WorkspaceID int64
	ProjectID   int64
	UserID      int64
	Cores       int64
	MemoryMiB   int64
	Enforcement string
	From        time.Time  `gorm:"column:from_at"`
	Until       *time.Time `gorm:"column:until_at"`
}

// Decision is what the pool answered to a request for shares.
type Decision struct {
	ID          int64
	At          time.Time
	ProjectID   int64
	WorkspaceID *int64 // nil when the launch was refused
	UserID      int64
	Outcome     string // granted, partial, delayed, refused
	Demand      Text
	Explanation Text
}

// Outcomes of a decision.
const (
	OutcomeGranted = "granted"
	OutcomePartial = "partial"
	OutcomeDelayed = "delayed"
	OutcomeRefused = "refused"
)
