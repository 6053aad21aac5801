package models

import "time"

// Agent represents a provider, authenticated by its own key. A provider has at
// most one that is not revoked.
type Agent struct {
	ID           int64
	ProviderID   int64
	KeyHash      string // of its public key
	Serial       string // of its certificate
	NextKeyHash  string // of a renewed certificate that has not been used yet
	NextSerial   string
	LastSerial   string // of the certificate before the present one
	TokenHash    string // expected with the next heartbeat
	PreviousHash string // accepted too, in case the last response was lost
	IssuedAt     time.Time
	ExpiresAt    time.Time
	CreatedAt    time.Time
	RevokedAt    *time.Time
	RevokedWhy   Text
	// RevokedByAdmin: enrolling again needs a new authorization.
	RevokedByAdmin bool
}

// Authorization lets one machine with certain GPUs enrol one agent, once.
type Authorization struct {
	ID         int64
	Hash       string `json:"-"` // of the code; the code itself is not stored
	GPUCode    string
	Name       string // the provider's; empty: the machine's own
	OwnerID    int64
	OwnerGiven bool // whether OwnerID was given; if not, an existing provider keeps its owner
	IssuedBy   int64
	CreatedAt  time.Time
	ExpiresAt  time.Time
	RedeemedAt *time.Time
	RefusedAt  *time.Time // time of the first failed attempt
	KeyHash    string     // of the key that redeemed it
	AgentID    *int64
}

// DeviceState is the last measurement of a device.
type DeviceState struct {
	DeviceID      int64 `gorm:"primaryKey"`
	At            time.Time
	Utilisation   int64 // percent
	MemoryUsedMiB int64
	Temperature   int64        // °C
	PowerMW       int64        `gorm:"column:power_mw"`
	Processes     []GPUProcess `gorm:"serializer:json;not null"`
}

// GPUProcess is a process that uses a GPU.
type GPUProcess struct {
	PID       int64  `json:"pid"`
	Name      string `json:"name"`
	MemoryMiB int64  `json:"memory_mib"`
}

// Telemetry is one bucket of a device's history, Step seconds long from At.
type Telemetry struct {
	DeviceID       int64 `gorm:"primaryKey"`
	Step           int64 `gorm:"primaryKey"`
	Slot           int64 `gorm:"primaryKey"`
	At             time.Time
	Samples        int64
	UtilisationSum int64 // percent
	UtilisationMax int64
	MemorySum      int64 // MiB
	MemoryMax      int64
	TemperatureSum int64 // °C
	TemperatureMax int64
	PowerSum       int64 // mW
	PowerMax       int64
}

// TableName overrides gorm's plural.
func (Telemetry) TableName() string { return "telemetry" }
