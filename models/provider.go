package models

import "time"

// Provider is a machine that lends GPUs.
type Provider struct {
	ID           int64      `json:"id"`
	Name         string     `json:"name"`
	State        string     `json:"state"` // pending, online, draining, offline, lost, recalled
	SeenAt       time.Time  `json:"seen_at"`
	Machine      string     `json:"machine"`       // a digest of the machine's identity
	Agent        bool       `json:"agent"`         // an enrolled agent speaks for it, not the portal itself
	GPUCode      string     `json:"gpu_code"`      // that was authorised
	ReportedCode string     `json:"reported_code"` // that waits for an authorisation; empty when none does
	OwnerID      *int64     `json:"owner_id"`
	Address      string     `json:"address"` // from which its agent speaks
	Reason       Text       `json:"reason"`  // of its state
	Draining     bool       `json:"draining"`
	RecallAt     *time.Time `json:"recall_at"` // its shares end then
	RecallReason string     `json:"recall_reason"`
	Terms        Terms      `json:"terms" gorm:"serializer:json;not null"`
	Version      int64      `json:"version"`
	CreatedAt    time.Time  `json:"created_at"`
}

// States of a provider.
const (
	ProviderPending  = "pending"  // its GPUs are not authorised
	ProviderOnline   = "online"   // lends
	ProviderDraining = "draining" // lends nothing new
	ProviderOffline  = "offline"  // taken out of the pool
	ProviderLost     = "lost"     // silent
	ProviderRecalled = "recalled" // its shares end, after a notice
)

// Standing is the state that follows from what is known of a provider that is
// not silent: what its owner wants comes before that it lends.
func (p Provider) Standing() string {
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

// Owner is the account whose machine it is; 0: nobody's.
func (p Provider) Owner() int64 {
	if p.OwnerID == nil {
		return 0
	}
	return *p.OwnerID
}

// Device is a physical GPU of a provider, or a MIG instance of one.
type Device struct {
	ID           int64      `json:"id"`
	ProviderID   int64      `json:"provider_id"`
	UUID         string     `json:"uuid"`
	Number       int64      `json:"number"` // on its machine, from 0; of an instance its GPU's
	Minor        int64      `json:"minor"`  // /dev/nvidia{Minor}
	Model        string     `json:"model"`
	MemoryMiB    int64      `json:"memory_mib"`
	Architecture string     `json:"architecture"`
	PCI          string     `json:"pci"`
	Driver       string     `json:"driver"`
	Simulated    bool       `json:"simulated"`
	Present      bool       `json:"present"`                                                          // the driver still reports it
	Mixed        bool       `json:"mixed"`                                                            // an administrator allowed fractions of different projects
	Sharing      string     `json:"sharing"`                                                          // wanted: exclusive, time-slicing, mps, mig
	Applied      string     `json:"applied"`                                                          // what its agent says is in effect; empty: nothing is known
	Layout       []string   `json:"layout" gorm:"serializer:json;not null"`                           // wanted MIG profiles, such as 3g.40gb
	MIGProfiles  []string   `json:"mig_profiles" gorm:"column:mig_profiles;serializer:json;not null"` // that the GPU can be cut into; empty: no MIG
	ParentID     *int64     `json:"parent_id"`                                                        // the physical GPU of a MIG instance
	Profile      string     `json:"profile"`                                                          // of a MIG instance
	Cores        int64      `json:"cores"`                                                            // of 100; less on a MIG instance
	NUMA         int64      `json:"numa" gorm:"column:numa"`                                          // node, -1 when unknown
	Peers        []string   `json:"peers" gorm:"serializer:json;not null"`                            // UUIDs of the GPUs that NVLink joins to it
	ECC          string     `json:"ecc" gorm:"column:ecc"`                                            // on, off, or empty: not known
	ECCErrors    int64      `json:"ecc_errors" gorm:"column:ecc_errors"`                              // uncorrected since the driver started
	XID          int64      `json:"xid" gorm:"column:xid"`                                            // the last error the driver told; 0: none
	XIDAt        *time.Time `json:"xid_at" gorm:"column:xid_at"`
	Trouble      Text       `json:"trouble"` // why nothing new is placed on it; empty: it is well
	Version      int64      `json:"version"`
	CreatedAt    time.Time  `json:"created_at"`
}

// How a device may be shared.
const (
	SharingExclusive   = "exclusive"    // one holder at a time
	SharingTimeSlicing = "time-slicing" // turns, limited by nothing
	SharingMPS         = "mps"          // limits kept by NVIDIA's Multi-Process Service
	SharingMIG         = "mig"          // cut into instances by the hardware
)

// AppliedUnknown is in effect on a device whose agent may be at work on an
// order that was taken back meanwhile.
const AppliedUnknown = "unknown"

// Exclusive tells whether a device has one holder at a time.
func (d Device) Exclusive() bool { return d.Sharing == SharingExclusive || d.ParentID != nil }

// PhysicalID is the physical GPU that a device is, or is an instance of.
func (d Device) PhysicalID() int64 {
	if d.ParentID != nil {
		return *d.ParentID
	}
	return d.ID
}

// Changing tells whether a device's sharing is not yet what is wanted. Only
// MPS and MIG are made by an agent; the others need nothing.
func (d Device) Changing() bool {
	made := func(mode string) bool { return mode == SharingMPS || mode == SharingMIG }
	return d.ParentID == nil && d.Sharing != d.Applied && (made(d.Sharing) || made(d.Applied) || d.Applied == AppliedUnknown)
}

// How a share is enforced. Nothing is claimed that does not hold.
const (
	EnforcedExclusive = "exclusive" // the whole device, visible to its holder alone
	EnforcedMIG       = "mig"       // an instance that the hardware keeps apart
	EnforcedMPS       = "mps"       // a percentage of threads and a memory limit, kept by MPS
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
	EndsAt      *time.Time // the end that the provider's owner has set, as its holder was told
	EndReason   Text
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
	GPUs        int64  `gorm:"column:gpus"` // asked for
	Cores       int64  // per GPU
	GPUModel    string `gorm:"column:gpu_model"`
	Explanation Text
}

// Outcomes of a decision.
const (
	OutcomeGranted = "granted"
	OutcomePartial = "partial"
	OutcomeDelayed = "delayed"
	OutcomeRefused = "refused"
)
