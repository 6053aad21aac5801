package models

import "time"

// WorkspaceTelemetry is what a workspace used on average since the measurement before.
type WorkspaceTelemetry struct {
	WorkspaceID int64
	At          time.Time
	CPUMilli    int64
	MemoryMiB   int64
	GPUPercent  *int64 // utilisation of its GPUs; nil: unknown, or shared with others
	Kernels     int64  // that ran then
	BusyKernels int64  // of them, that computed
}

// TableName is the name of the table, which does not follow gorm's rule.
func (WorkspaceTelemetry) TableName() string { return "workspace_telemetry" }
