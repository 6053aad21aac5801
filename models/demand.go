package models

// Demand is the resources that a holder needs. GPU amounts are per GPU.
type Demand struct {
	GPUs         int64  `json:"gpus" gorm:"column:gpus"`
	Cores        int64  `json:"cores" gorm:"column:cores"`
	GPUMemoryMiB int64  `json:"gpu_memory_mib" gorm:"column:gpu_memory_mib"`
	GPUModel     string `json:"gpu_model" gorm:"column:gpu_model"`
	CPUMilli     int64  `json:"cpu_milli" gorm:"column:cpu_milli"`
	MemoryMiB    int64  `json:"memory_mib" gorm:"column:memory_mib"`
	StorageMiB   int64  `json:"storage_mib" gorm:"column:storage_mib"`
}

// Resources is the demand as counted against quotas: Σ (per GPU × GPUs).
func (d Demand) Resources() Resources {
	return Resources{d.GPUs * d.Cores, d.GPUs * d.GPUMemoryMiB, d.CPUMilli, d.MemoryMiB, d.StorageMiB}
}
