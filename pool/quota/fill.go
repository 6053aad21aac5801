package quota

import (
	"cmp"
	"math/bits"

	"weir/models"
)

// Source is where an amount of a quota or limit comes from.
type Source string

const (
	Given       Source = "given"       // entered
	Unallocated Source = "unallocated" // GPU cores of the pool that no quota allocates
	WholeGPU    Source = "gpu"         // one GPU, or what the project has of it
	OfCapacity  Source = "capacity"    // in proportion to the GPU cores, of the pool's capacity
	OfMachine   Source = "machine"     // in proportion to the GPU cores, of the portal's machine
	OfSettings  Source = "settings"    // per GPU, as set for the server
	OfQuota     Source = "quota"       // in proportion to the GPU cores, of the project's quota
	PerMember   Source = "member"      // an equal part of the project's quota
	NoLaunch    Source = "no_launch"   // none, as the role cannot launch workspaces
)

// sourceTexts name the sources for people.
var sourceTexts = map[Source]models.Text{
	Given:       models.Say("as entered"),
	Unallocated: models.Say("not allocated in the pool"),
	WholeGPU:    models.Say("one GPU"),
	OfCapacity:  models.Say("part of the pool, by GPU cores"),
	OfMachine:   models.Say("part of the machine, by GPU cores"),
	OfSettings:  models.Say("server setting for each GPU"),
	OfQuota:     models.Say("part of the quota, by GPU cores"),
	PerMember:   models.Say("equal part of the quota"),
	NoLaunch:    models.Say("role cannot launch workspaces"),
}

// Text names the source for people.
func (s Source) Text() models.Text { return sourceTexts[s] }

// Sources are the sources of a vector, in the order of [models.Resources.Amounts].
type Sources [5]Source

// Base is what amounts that are left open are filled from.
type Base struct {
	Whole   models.Resources // what all its GPU cores come with
	Cores   int64            // GPU cores, where they are left open
	Least   models.Resources // filled at least, as far as Whole has it
	Sources Sources          // of filled amounts
}

// Fill fills the amounts that are left open. Of GPU memory, CPU, memory and storage
// it takes the part of the whole that the GPU cores are; without GPU cores in the
// whole, all. Filled amounts exceed the whole only if the cores do.
func (b Base) Fill(in models.ResourcesInput) (r models.Resources, from Sources) {
	from = b.Sources
	for i, given := range in.Amounts() {
		if given != nil {
			from[i] = Given
		}
	}
	cores := b.Cores
	if in.GPUCores != nil {
		cores = *in.GPUCores
	}
	filled := part(b.Whole, cores, b.Whole.GPUCores).Max(b.Least.Min(b.Whole)).Input()
	filled.GPUCores = &cores
	return in.Or(filled).Resources(), from
}

// Split is an equal part of a quota for each of n members.
func Split(quota models.Resources, n int64) models.Resources { return part(quota, 1, n) }

// part is r × n ÷ whole, at most models.MaxAmount; all of r if the whole is nothing.
func part(r models.Resources, n, whole int64) models.Resources {
	return r.Each(r, func(amount, _ int64) int64 {
		if models.IsUnlimited(amount) || whole <= 0 {
			return amount
		}
		high, low := bits.Mul64(uint64(max(amount, 0)), uint64(max(n, 0)))
		if high >= uint64(whole) {
			return models.MaxAmount
		}
		quotient, _ := bits.Div64(high, low, uint64(whole))
		return int64(min(quotient, uint64(models.MaxAmount)))
	})
}

// LimitBase is what the limit of a role is filled from: one GPU's part of the
// project's quota; nothing if the role cannot launch workspaces.
func LimitBase(quota models.Resources, launches bool) Base {
	if !launches {
		return Base{Sources: Sources{NoLaunch, NoLaunch, NoLaunch, NoLaunch, NoLaunch}}
	}
	return Base{Whole: quota, Cores: min(quota.GPUCores, coresPerGPU), Least: models.Resources{CPUMilli: 100, MemoryMiB: 512},
		Sources: Sources{WholeGPU, OfQuota, OfQuota, OfQuota, OfQuota}}
}

const coresPerGPU = 100

// Pool is what quotas are filled from.
type Pool struct {
	Capacity  models.Resources // of the machines that lend GPUs; CPU, memory and storage 0 if not known
	Allocated models.Resources // by quotas
	Machine   models.Resources // CPU and memory of the only machine that runs workspaces; 0: there are others
	PerGPU    models.Resources // of each GPU, where the others are not known
}

// QuotaBase is what the quota of a project is filled from: of each resource the
// capacity, the machine's, or that of the settings for each GPU. A pool without GPUs
// counts as one GPU, of which also a project without GPU cores gets all the rest.
func (p Pool) QuotaBase() Base {
	cores := cmp.Or(p.Capacity.GPUCores, coresPerGPU)
	settings := part(p.PerGPU, cores, coresPerGPU)
	b := Base{Cores: p.Capacity.Sub(p.Allocated.Floor()).Floor().GPUCores, Least: models.Resources{CPUMilli: 1000, MemoryMiB: 2048},
		Sources: Sources{Unallocated}}
	known := func(i int, capacity, machine, settings int64) int64 {
		switch {
		case capacity > 0:
			b.Sources[i] = OfCapacity
			return capacity
		case machine > 0:
			b.Sources[i] = OfMachine
			return machine
		}
		b.Sources[i] = OfSettings
		return settings
	}
	b.Whole = models.Resources{GPUCores: cores,
		GPUMemoryMiB: known(1, p.Capacity.GPUMemoryMiB, 0, settings.GPUMemoryMiB),
		CPUMilli:     known(2, p.Capacity.CPUMilli, p.Machine.CPUMilli, settings.CPUMilli),
		MemoryMiB:    known(3, p.Capacity.MemoryMiB, p.Machine.MemoryMiB, settings.MemoryMiB),
		StorageMiB:   known(4, p.Capacity.StorageMiB, 0, settings.StorageMiB)}
	if p.Capacity.GPUCores == 0 {
		b.Least = b.Whole
		b.Least.GPUMemoryMiB = 0
	}
	return b
}
