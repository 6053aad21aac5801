package models

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
)

// ResourcesInput is a quota or limit as entered; nil is left open, to be filled in.
type ResourcesInput struct {
	GPUCores     *int64 `json:"gpu_cores,omitempty" minimum:"0" doc:"GPU cores; 100 per GPU"`
	GPUMemoryMiB *int64 `json:"gpu_memory_mib,omitempty" minimum:"0" doc:"GPU memory, MiB"`
	CPUMilli     *int64 `json:"cpu_milli,omitempty" minimum:"0" doc:"thousandths of a CPU core, or unlimited"`
	MemoryMiB    *int64 `json:"memory_mib,omitempty" minimum:"0" doc:"memory, MiB, or unlimited"`
	StorageMiB   *int64 `json:"storage_mib,omitempty" minimum:"0" doc:"storage, MiB, or unlimited"`
}

// Input is the input of all amounts of r.
func (r Resources) Input() ResourcesInput {
	return ResourcesInput{&r.GPUCores, &r.GPUMemoryMiB, &r.CPUMilli, &r.MemoryMiB, &r.StorageMiB}
}

// Amounts lists the input in the order of [Resources.Amounts].
func (in ResourcesInput) Amounts() []*int64 {
	return []*int64{in.GPUCores, in.GPUMemoryMiB, in.CPUMilli, in.MemoryMiB, in.StorageMiB}
}

// Resources is the amounts that are given, and 0 for those left open.
func (in ResourcesInput) Resources() Resources {
	or := func(p *int64) int64 { return *cmp.Or(p, new(int64)) }
	return Resources{or(in.GPUCores), or(in.GPUMemoryMiB), or(in.CPUMilli), or(in.MemoryMiB), or(in.StorageMiB)}
}

// Or is the input with those of o where it is left open.
func (in ResourcesInput) Or(o ResourcesInput) ResourcesInput {
	return ResourcesInput{cmp.Or(in.GPUCores, o.GPUCores), cmp.Or(in.GPUMemoryMiB, o.GPUMemoryMiB), cmp.Or(in.CPUMilli, o.CPUMilli),
		cmp.Or(in.MemoryMiB, o.MemoryMiB), cmp.Or(in.StorageMiB, o.StorageMiB)}
}

// Open reports whether any amount is left open.
func (in ResourcesInput) Open() bool { return slices.Contains(in.Amounts(), nil) }

// Check adds a problem for every amount that is negative or above MaxAmount, unless
// it is Unlimited and can be; prefix names the field, such as "quota".
func (in ResourcesInput) Check(prefix string, p *Problems) {
	given := in.Amounts()
	for i, a := range in.Resources().Amounts() {
		if given[i] == nil || a.Value == Unlimited && CanBeUnlimited(a.Name) {
			continue
		}
		if a.Value == Unlimited {
			p.Add(prefix+"."+a.Name, "cannot be unlimited; only CPU, memory and storage can")
			continue
		}
		checkAmount(prefix+"."+a.Name, a.Value, p)
	}
}

// CanBeUnlimited reports whether a quota or limit of the named resource can be
// Unlimited.
func CanBeUnlimited(name string) bool {
	return name == "cpu_milli" || name == "memory_mib" || name == "storage_mib"
}

// Bound is an amount that can be Unlimited: in JSON an integer or "unlimited".
type Bound int64

// MarshalJSON writes the number or the word.
func (a Bound) MarshalJSON() ([]byte, error) {
	if IsUnlimited(int64(a)) {
		return json.Marshal(UnlimitedWord)
	}
	return strconv.AppendInt(nil, int64(a), 10), nil
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (a *Bound) UnmarshalJSON(b []byte) error {
	if word := ""; json.Unmarshal(b, &word) == nil && word == UnlimitedWord { // in any spelling of JSON
		*a = Bound(Unlimited)
		return nil
	}
	err := json.Unmarshal(b, (*int64)(a))
	if IsUnlimited(int64(*a)) { // too large, but not unlimited
		*a = math.MaxInt64
	}
	return err
}

// amountsJSON is [Resources] and [ResourcesInput] in JSON.
type amountsJSON struct {
	GPUCores     *Bound `json:"gpu_cores,omitempty"`
	GPUMemoryMiB *Bound `json:"gpu_memory_mib,omitempty"`
	CPUMilli     *Bound `json:"cpu_milli,omitempty"`
	MemoryMiB    *Bound `json:"memory_mib,omitempty"`
	StorageMiB   *Bound `json:"storage_mib,omitempty"`
}

// MarshalJSON writes the amounts that are given.
func (in ResourcesInput) MarshalJSON() ([]byte, error) {
	return json.Marshal(amountsJSON{(*Bound)(in.GPUCores), (*Bound)(in.GPUMemoryMiB),
		(*Bound)(in.CPUMilli), (*Bound)(in.MemoryMiB), (*Bound)(in.StorageMiB)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (in *ResourcesInput) UnmarshalJSON(b []byte) error {
	var v amountsJSON
	err := json.Unmarshal(b, &v)
	*in = ResourcesInput{(*int64)(v.GPUCores), (*int64)(v.GPUMemoryMiB), (*int64)(v.CPUMilli), (*int64)(v.MemoryMiB), (*int64)(v.StorageMiB)}
	return err
}

// MarshalJSON writes all amounts.
func (r Resources) MarshalJSON() ([]byte, error) { return r.Input().MarshalJSON() }

// UnmarshalJSON reads what MarshalJSON wrote; an absent amount is 0.
func (r *Resources) UnmarshalJSON(b []byte) error {
	var in ResourcesInput
	err := in.UnmarshalJSON(b)
	*r = in.Resources()
	return err
}
