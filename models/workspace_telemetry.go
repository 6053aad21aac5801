package models

import "time"

// HolderUtilisation is how much a holder used of each of its simulated GPUs when that was
// measured last, in percent of the GPU.
type HolderUtilisation struct {
	HolderID int64 `gorm:"primaryKey"`
	At       time.Time
	Percent  int64
}

// TableName overrides gorm's plural.
func (HolderUtilisation) TableName() string { return "holder_utilisation" }

// WorkspaceTelemetry is what a workspace used on average since the measurement before.
type WorkspaceTelemetry struct {
	WorkspaceID int64
	At          time.Time
	CPUMilli    int64
	MemoryMiB   int64
	GPUPercent  *int64 // utilisation of its GPUs; nil: unknown, or of real GPUs that are shared with others
	Kernels     int64  // that ran then
	BusyKernels int64  // of them, that computed
}

// TableName is the name of the table, which does not follow gorm's rule.
func (WorkspaceTelemetry) TableName() string { return "workspace_telemetry" }
