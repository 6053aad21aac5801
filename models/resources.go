package models

// Resources is an amount of each resource: GPU cores (100 are one whole GPU),
// GPU memory in MiB, CPU in thousandths of a core, memory and storage in MiB. In
// quotas and limits, the last three can be Unlimited.
type Resources struct {
	GPUCores     int64 `json:"gpu_cores" gorm:"column:gpu_cores" minimum:"0" required:"false" doc:"GPU cores; 100 per GPU"`
	GPUMemoryMiB int64 `json:"gpu_memory_mib" gorm:"column:gpu_memory_mib" minimum:"0" required:"false" doc:"GPU memory, MiB"`
	CPUMilli     int64 `json:"cpu_milli" gorm:"column:cpu_milli" minimum:"0" required:"false" doc:"thousandths of a CPU core"`
	MemoryMiB    int64 `json:"memory_mib" gorm:"column:memory_mib" minimum:"0" required:"false" doc:"memory, MiB"`
	StorageMiB   int64 `json:"storage_mib" gorm:"column:storage_mib" minimum:"0" required:"false" doc:"storage, MiB"`
}

// Amount is one resource of a vector: its field's name, as in JSON, its name
// for people, and how much.
type Amount struct {
	Name  string
	Label Text
	Value int64
}

// Amounts lists the vector in its fixed order.
func (r Resources) Amounts() []Amount {
	return []Amount{
		{"gpu_cores", Say("GPU cores"), r.GPUCores},
		{"gpu_memory_mib", Say("GPU memory"), r.GPUMemoryMiB},
		{"cpu_milli", Say("CPU"), r.CPUMilli},
		{"memory_mib", Say("Memory"), r.MemoryMiB},
		{"storage_mib", Say("Storage"), r.StorageMiB},
	}
}

// Each combines the amounts of r and o.
func (r Resources) Each(o Resources, f func(a, b int64) int64) Resources {
	return Resources{f(r.GPUCores, o.GPUCores), f(r.GPUMemoryMiB, o.GPUMemoryMiB),
		f(r.CPUMilli, o.CPUMilli), f(r.MemoryMiB, o.MemoryMiB), f(r.StorageMiB, o.StorageMiB)}
}

// Add is r + o.
func (r Resources) Add(o Resources) Resources {
	return r.Each(o, func(a, b int64) int64 {
		if IsUnlimited(a) || IsUnlimited(b) {
			return Unlimited
		}
		return a + b
	})
}

// Sub is r − o; amounts may become negative. Of an unlimited amount, all remains.
func (r Resources) Sub(o Resources) Resources {
	return r.Each(o, func(a, b int64) int64 {
		if IsUnlimited(a) {
			return Unlimited
		}
		return a - b
	})
}

// Times is r taken n times.
func (r Resources) Times(n int64) Resources {
	return r.Each(r, func(a, _ int64) int64 {
		if IsUnlimited(a) && n > 0 {
			return Unlimited
		}
		return a * n
	})
}

// Floor replaces negative amounts by 0.
func (r Resources) Floor() Resources {
	return r.Each(Resources{}, func(a, zero int64) int64 { return max(a, zero) })
}

// Min is the lesser of each amount.
func (r Resources) Min(o Resources) Resources {
	return r.Each(o, func(a, b int64) int64 { return min(a, b) })
}

// Max is the greater of each amount.
func (r Resources) Max(o Resources) Resources {
	return r.Each(o, func(a, b int64) int64 { return max(a, b) })
}

// Exceeding lists the amounts of r that are larger than limit's, with the limit
// of each. Nothing exceeds an unlimited one.
func (r Resources) Exceeding(limit Resources) []Excess {
	var over []Excess
	limits := limit.Amounts()
	for i, a := range r.Amounts() {
		if a.Value > limits[i].Value && !IsUnlimited(limits[i].Value) {
			over = append(over, Excess{Amount: a, Limit: limits[i].Value})
		}
	}
	return over
}

// Excess is an amount that is larger than its limit.
type Excess struct {
	Amount
	Limit int64
}

// checkAmount adds a problem when n is negative or above MaxAmount.
func checkAmount(field string, n int64, p *Problems) {
	if n < 0 {
		p.Add(field, "must not be negative")
	} else if n > MaxAmount {
		p.Add(field, "must be at most %d", MaxAmount)
	}
}
