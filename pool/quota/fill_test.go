package quota_test

import (
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/pool/quota"
)

const gib = 1024

// lab has eight GPUs in one machine.
var lab = quota.Pool{Capacity: models.Resources{GPUCores: 800, GPUMemoryMiB: 640 * gib}, Machine: models.Resources{CPUMilli: 64_000, MemoryMiB: 512 * gib},
	PerGPU: models.Resources{GPUMemoryMiB: 40 * gib, CPUMilli: 8000, MemoryMiB: 32 * gib, StorageMiB: 100 * gib}}

func open(cores ...int64) (in models.ResourcesInput) {
	if len(cores) > 0 {
		in.GPUCores = &cores[0]
	}
	return in
}

func TestFillQuota(t *testing.T) {
	allocated, stated, empty, cloud := lab, lab, lab, lab
	allocated.Allocated.GPUCores = 500
	stated.Capacity.CPUMilli, stated.Capacity.MemoryMiB, stated.Capacity.StorageMiB = 128_000, 1024*gib, 80*gib
	empty.Capacity = models.Resources{}
	cloud.Machine = models.Resources{}
	nothing := quota.Pool{PerGPU: lab.PerGPU}
	machine := quota.Sources{quota.Unallocated, quota.OfCapacity, quota.OfMachine, quota.OfMachine, quota.OfSettings}
	given := func(s quota.Sources) quota.Sources { s[0] = quota.Given; return s }
	settings := quota.Sources{quota.Unallocated, quota.OfSettings, quota.OfSettings, quota.OfSettings, quota.OfSettings}
	for name, c := range map[string]struct {
		pool quota.Pool
		in   models.ResourcesInput
		want models.Resources
		from quota.Sources
	}{
		"half of the pool":       {lab, open(400), models.Resources{GPUCores: 400, GPUMemoryMiB: 320 * gib, CPUMilli: 32_000, MemoryMiB: 256 * gib, StorageMiB: 400 * gib}, given(machine)},
		"all of it":              {lab, open(), models.Resources{GPUCores: 800, GPUMemoryMiB: 640 * gib, CPUMilli: 64_000, MemoryMiB: 512 * gib, StorageMiB: 800 * gib}, machine},
		"what is not allocated":  {allocated, open(), models.Resources{GPUCores: 300, GPUMemoryMiB: 240 * gib, CPUMilli: 24_000, MemoryMiB: 192 * gib, StorageMiB: 300 * gib}, machine},
		"a capacity was entered": {stated, open(100), models.Resources{GPUCores: 100, GPUMemoryMiB: 80 * gib, CPUMilli: 16_000, MemoryMiB: 128 * gib, StorageMiB: 10 * gib}, quota.Sources{quota.Given, quota.OfCapacity, quota.OfCapacity, quota.OfCapacity, quota.OfCapacity}},
		"a cluster":              {cloud, open(50), models.Resources{GPUCores: 50, GPUMemoryMiB: 40 * gib, CPUMilli: 4000, MemoryMiB: 16 * gib, StorageMiB: 50 * gib}, quota.Sources{quota.Given, quota.OfCapacity, quota.OfSettings, quota.OfSettings, quota.OfSettings}},
		"no GPU cores":           {lab, open(0), models.Resources{CPUMilli: 1000, MemoryMiB: 2 * gib}, given(machine)},
		"a machine without GPUs": {empty, open(), models.Resources{CPUMilli: 64_000, MemoryMiB: 512 * gib, StorageMiB: 100 * gib}, quota.Sources{quota.Unallocated, quota.OfSettings, quota.OfMachine, quota.OfMachine, quota.OfSettings}},
		"no machine yet":         {nothing, open(), models.Resources{CPUMilli: 8000, MemoryMiB: 32 * gib, StorageMiB: 100 * gib}, settings},
		"GPUs of later":          {nothing, open(400), models.Resources{GPUCores: 400, GPUMemoryMiB: 160 * gib, CPUMilli: 32_000, MemoryMiB: 128 * gib, StorageMiB: 400 * gib}, given(settings)},
	} {
		if got, from := c.pool.QuotaBase().Fill(c.in); got != c.want || from != c.from {
			t.Errorf("%s: %+v %v, want %+v %v", name, got, from, c.want, c.from)
		}
	}
}

func TestFillLimit(t *testing.T) {
	team, _ := lab.QuotaBase().Fill(open())
	unlimited, cpuOnly := team, models.Resources{CPUMilli: 4000, MemoryMiB: 8 * gib, StorageMiB: gib}
	unlimited.CPUMilli = models.Unlimited
	for name, c := range map[string]struct {
		quota    models.Resources
		launches bool
		in       models.ResourcesInput
		want     models.Resources
	}{
		"one GPU":                {team, true, open(), models.Resources{GPUCores: 100, GPUMemoryMiB: 80 * gib, CPUMilli: 8000, MemoryMiB: 64 * gib, StorageMiB: 100 * gib}},
		"some cores":             {team, true, open(50), models.Resources{GPUCores: 50, GPUMemoryMiB: 40 * gib, CPUMilli: 4000, MemoryMiB: 32 * gib, StorageMiB: 50 * gib}},
		"no cores":               {team, true, open(0), models.Resources{CPUMilli: 100, MemoryMiB: 512}},
		"cannot launch":          {team, false, open(), models.Resources{}},
		"of an unlimited quota":  {unlimited, true, open(50), models.Resources{GPUCores: 50, GPUMemoryMiB: 40 * gib, CPUMilli: models.Unlimited, MemoryMiB: 32 * gib, StorageMiB: 50 * gib}},
		"of a quota without GPU": {cpuOnly, true, open(), cpuOnly},
		"of nothing":             {models.Resources{}, true, open(), models.Resources{}},
	} {
		if got, _ := quota.LimitBase(c.quota, c.launches).Fill(c.in); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func drawAmount(most int64) *rapid.Generator[int64] {
	return rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(0, 10_000), rapid.Int64Range(0, most))
}

func drawResources(t *rapid.T, name string, most int64) models.Resources {
	n := drawAmount(most)
	return models.Resources{GPUCores: n.Draw(t, name+" cores"), GPUMemoryMiB: n.Draw(t, name+" GPU memory"), CPUMilli: n.Draw(t, name+" CPU"),
		MemoryMiB: n.Draw(t, name+" memory"), StorageMiB: n.Draw(t, name+" storage")}
}

func drawBase(t *rapid.T) quota.Base {
	pool := quota.Pool{Capacity: drawResources(t, "capacity", models.MaxAmount), Allocated: drawResources(t, "allocated", models.MaxAmount),
		Machine: drawResources(t, "machine", models.MaxAmount), PerGPU: drawResources(t, "per GPU", 10_000_000)}
	if rapid.Bool().Draw(t, "a limit") {
		return quota.LimitBase(pool.Capacity, rapid.Bool().Draw(t, "launches"))
	}
	return pool.QuotaBase()
}

func drawInput(t *rapid.T) models.ResourcesInput {
	in := drawResources(t, "given", models.MaxAmount).Input()
	for i, p := range []**int64{&in.GPUCores, &in.GPUMemoryMiB, &in.CPUMilli, &in.MemoryMiB, &in.StorageMiB} {
		switch rapid.IntRange(0, 3).Draw(t, "open") {
		case 0, 1:
			*p = nil
		case 2:
			if models.CanBeUnlimited((models.Resources{}).Amounts()[i].Name) {
				*p = new(models.Unlimited)
			}
		}
	}
	return in
}

// What is given is kept, what is filled exceeds the whole only if the cores do, and
// to fill again changes nothing.
func TestFillProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, in := drawBase(t), drawInput(t)
		got, from := b.Fill(in)
		amounts, whole := got.Amounts(), b.Whole.Amounts()
		for i, given := range in.Amounts() {
			n := amounts[i].Value
			if given != nil && (n != *given || from[i] != quota.Given) {
				t.Fatalf("%s: %d is given, got %d %s", amounts[i].Name, *given, n, from[i])
			}
			if given == nil && from[i] == quota.Given {
				t.Fatalf("%s is not given", amounts[i].Name)
			}
			if i > 0 && given == nil && got.GPUCores <= b.Whole.GPUCores && n > whole[i].Value {
				t.Fatalf("%s: %d of %d, with %d of %d cores", amounts[i].Name, n, whole[i].Value, got.GPUCores, b.Whole.GPUCores)
			}
			if given == nil && n < 0 || n > models.MaxAmount && given == nil {
				t.Fatalf("%s: %d", amounts[i].Name, n)
			}
		}
		if again, _ := b.Fill(got.Input()); again != got {
			t.Fatalf("%+v, then %+v", got, again)
		}
	})
}

// More cores never come with less.
func TestFillIsMonotone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, in := drawBase(t), drawInput(t)
		few, many := in, in
		few.GPUCores = new(drawAmount(models.MaxAmount).Draw(t, "few"))
		many.GPUCores = new(*few.GPUCores + drawAmount(models.MaxAmount-*few.GPUCores).Draw(t, "more"))
		less, _ := b.Fill(few)
		more, _ := b.Fill(many)
		if over := less.Exceeding(more); len(over) > 0 {
			t.Fatalf("%d cores: %+v; %d cores: %+v", *few.GPUCores, less, *many.GPUCores, more)
		}
	})
}

// The limits of all members, together, are at most the quota that is split, and
// nobody could get more.
func TestSplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q, n := drawResources(t, "quota", models.MaxAmount), rapid.Int64Range(1, 1000).Draw(t, "members")
		limit := quota.Split(q, n)
		if over := limit.Times(n).Exceeding(q); len(over) > 0 {
			t.Fatalf("%d × %+v exceeds %+v", n, limit, q)
		}
		for i, a := range limit.Amounts() {
			if whole := q.Amounts()[i].Value; (a.Value+1)*n <= whole {
				t.Fatalf("%s: %d × %d of %d", a.Name, n, a.Value, whole)
			}
		}
		q.CPUMilli = models.Unlimited
		if got := quota.Split(q, n).CPUMilli; got != models.Unlimited {
			t.Fatalf("of an unlimited quota: %d", got)
		}
	})
}
