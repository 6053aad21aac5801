package models

import (
	"cmp"
	"time"
)

// Provider is a machine that lends GPUs.
type Provider struct {
	ID           int64      `json:"id"`
	Name         string     `json:"name"`
	State        string     `json:"state"` // pending, online, draining, offline, lost, recalled
	SeenAt       time.Time  `json:"seen_at"`
	Machine      string     `json:"machine"`       // a digest of the machine's identity
	Agent        bool       `json:"agent"`         // managed by an enrolled agent, not by the portal itself
	GPUCode      string     `json:"gpu_code"`      // the authorised one
	ReportedCode string     `json:"reported_code"` // a new one to authorise; empty: none
	OwnerID      *int64     `json:"owner_id"`
	Address      string     `json:"address"` // of its agent
	Reason       Text       `json:"reason"`  // of the state
	Draining     bool       `json:"draining"`
	RecallAt     *time.Time `json:"recall_at"` // when its shares end
	RecallReason string     `json:"recall_reason"`
	Terms        Terms      `json:"terms" gorm:"serializer:json;not null"`
	Version      int64      `json:"version"`
	CreatedAt    time.Time  `json:"created_at"`
}

// States of a provider.
const (
	ProviderPending  = "pending"  // its GPUs are not authorised
	ProviderOnline   = "online"   // gets new shares
	ProviderDraining = "draining" // gets no new shares
	ProviderOffline  = "offline"  // removed from the pool
	ProviderLost     = "lost"     // no heartbeats
	ProviderRecalled = "recalled" // its shares end, after a notice
)

// ReachableState computes the state of a provider that sends heartbeats.
func (p Provider) ReachableState() string {
	switch {
	case p.ReportedCode != "":
		return ProviderPending
	case p.RecallAt != nil:
		return ProviderRecalled
	case p.Draining:
		return ProviderDraining
	default:
		return ProviderOnline
	}
}

// Owner is the account of the owner; 0: none.
func (p Provider) Owner() int64 { return *cmp.Or(p.OwnerID, new(int64)) }

// Device is a physical GPU of a provider, or a MIG instance of one.
type Device struct {
	ID           int64    `json:"id"`
	ProviderID   int64    `json:"provider_id"`
	UUID         string   `json:"uuid"`
	Number       int64    `json:"number"` // on its machine, from 0; of an instance its GPU's
	Minor        int64    `json:"minor"`  // /dev/nvidia{Minor}
	Model        string   `json:"model"`
	MemoryMiB    int64    `json:"memory_mib"`
	Architecture string   `json:"architecture"`
	PCI          string   `json:"pci"`
	Driver       string   `json:"driver"`
	Simulated    bool     `json:"simulated"`
	Present      bool     `json:"present"`                                // the driver still reports it
	Mixed        bool     `json:"mixed"`                                  // an administrator has allowed fractions of different projects
	Sharing      string   `json:"sharing"`                                // wanted: exclusive, time-slicing, mps, mig
	Applied      string   `json:"applied"`                                // in effect, as reported by its agent; empty: unknown
	SharingError string   `json:"sharing_error"`                          // why the wanted mode is not in effect; empty: it is, or will be
	Layout       []string `json:"layout" gorm:"serializer:json;not null"` // wanted MIG profiles, such as 3g.40gb
	// MIGProfiles are those that the GPU supports; empty: no MIG.
	MIGProfiles []string   `json:"mig_profiles" gorm:"column:mig_profiles;serializer:json;not null"`
	ParentID    *int64     `json:"parent_id"`                             // the physical GPU of a MIG instance
	Profile     string     `json:"profile"`                               // of a MIG instance
	Cores       int64      `json:"cores"`                                 // of 100; less on a MIG instance
	NUMA        int64      `json:"numa" gorm:"column:numa"`               // node, -1 when unknown
	Peers       []string   `json:"peers" gorm:"serializer:json;not null"` // UUIDs of the GPUs connected by NVLink
	ECC         string     `json:"ecc" gorm:"column:ecc"`                 // on, off, or empty: unknown
	ECCErrors   int64      `json:"ecc_errors" gorm:"column:ecc_errors"`   // uncorrected since the driver started
	XID         int64      `json:"xid" gorm:"column:xid"`                 // last error code of the driver; 0: none
	XIDAt       *time.Time `json:"xid_at" gorm:"column:xid_at"`
	Trouble     Text       `json:"trouble"` // why it gets no new shares; empty: healthy
	Version     int64      `json:"version"`
	CreatedAt   time.Time  `json:"created_at"`
}

// Modes of sharing a device.
const (
	SharingExclusive   = "exclusive"    // one workspace at a time
	SharingTimeSlicing = "time-slicing" // no limits
	SharingMPS         = "mps"          // limits enforced by NVIDIA's Multi-Process Service
	SharingMIG         = "mig"          // hardware instances
)

// AppliedUnknown is the mode in effect while an agent may still be applying a
// withdrawn change.
const AppliedUnknown = "unknown"

// Exclusive reports whether one workspace at a time can use the device.
func (d Device) Exclusive() bool { return d.Sharing == SharingExclusive || d.ParentID != nil }

// PhysicalID is the physical GPU that a device is, or is an instance of.
func (d Device) PhysicalID() int64 {
	return *cmp.Or(d.ParentID, &d.ID)
}

// Changing reports whether the wanted sharing mode is not in effect yet. Only
// MPS and MIG need an agent to apply them.
func (d Device) Changing() bool {
	needsAgent := func(mode string) bool { return mode == SharingMPS || mode == SharingMIG }
	return d.ParentID == nil && d.Sharing != d.Applied && (needsAgent(d.Sharing) || needsAgent(d.Applied) || d.Applied == AppliedUnknown)
}

// How a share is enforced.
const (
	EnforcedExclusive = "exclusive" // the whole device, visible only to its workspace
	EnforcedMIG       = "mig"       // a hardware instance
	EnforcedMPS       = "mps"       // a percentage of threads and a memory limit, enforced by MPS
	EnforcedAdvisory  = "advisory"  // shown to the user, not enforced
)

// EnforcementLapsed is the enforcement of a share under MPS while its GPU has no
// daemon: advisory, until the daemon is back. It is never stored.
const EnforcementLapsed = "lapsed"

// Share is a part of a device that is allocated to a workspace for
// [From, Until); Until is nil as long as it is open.
type Share struct {
	ID          int64
	DeviceID    int64
	HolderID    int64
	ProjectID   int64
	UserID      int64
	Cores       int64
	MemoryMiB   int64
	Enforcement string
	From        time.Time  `gorm:"column:from_at"`
	Until       *time.Time `gorm:"column:until_at"`
	EndsBy      *time.Time // by when it ends if a reservation needs it, by the time limit of its holder; nil: never
	EndsAt      *time.Time // the announced end, set by the provider's owner
	EndReason   Text

	GrantID *int64 // the grant of a reservation in which it is used; nil: none
}

// DecisionRecord is the record of a decision on a demand for shares.
type DecisionRecord struct {
	ID          int64
	At          time.Time
	ProjectID   int64
	HolderID    *int64 // nil when the launch was refused
	UserID      int64
	Outcome     string // granted, partial, delayed, refused
	Demand      Text
	GPUs        int64  `gorm:"column:gpus"` // of the demand
	Cores       int64  // per GPU
	GPUModel    string `gorm:"column:gpu_model"`
	Explanation Text
}

// TableName keeps the name of the table apart from the type's.
func (DecisionRecord) TableName() string { return "decisions" }

// Outcomes of a decision.
const (
	OutcomeGranted = "granted"
	OutcomePartial = "partial"
	OutcomeDelayed = "delayed"
	OutcomeRefused = "refused"
)
