package nvml

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
)

// profile is a GPU instance profile.
type profile struct {
	name string
	gonvml.GpuInstanceProfileInfo
}

// suffixes of profiles with the same size, as in NVIDIA's MIG user guide.
var suffixes = map[int]string{
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1:   "+me",
	gonvml.GPU_INSTANCE_PROFILE_2_SLICE_REV1:   "+me",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_GFX:    "+gfx",
	gonvml.GPU_INSTANCE_PROFILE_2_SLICE_GFX:    "+gfx",
	gonvml.GPU_INSTANCE_PROFILE_3_SLICE_GFX:    "+gfx",
	gonvml.GPU_INSTANCE_PROFILE_4_SLICE_GFX:    "+gfx",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_NO_ME:  "-me",
	gonvml.GPU_INSTANCE_PROFILE_2_SLICE_NO_ME:  "-me",
	gonvml.GPU_INSTANCE_PROFILE_1_SLICE_ALL_ME: "+me.all",
	gonvml.GPU_INSTANCE_PROFILE_2_SLICE_ALL_ME: "+me.all",
}

// profiles are the supported profiles of a GPU, smallest first.
func (d *Driver) profiles(dev gonvml.Device) []profile {
	memory := queryOr(d, "nvmlDeviceGetMemoryInfo", dev.GetMemoryInfo, gonvml.Memory{}).Total >> 20
	var all []profile
	for i := range gonvml.GPU_INSTANCE_PROFILE_COUNT {
		info, ret := query(d, "nvmlDeviceGetGpuInstanceProfileInfo", func() (gonvml.GpuInstanceProfileInfo, gonvml.Return) {
			return dev.GetGpuInstanceProfileInfo(i)
		})
		if ret == gonvml.ERROR_FUNCTION_NOT_FOUND {
			break
		}
		if ret == gonvml.SUCCESS && info.SliceCount > 0 && info.InstanceCount > 0 {
			all = append(all, profile{profileName(info.SliceCount, info.MemorySizeMB, memory) + suffixes[i], info})
		}
	}
	slices.SortStableFunc(all, func(a, b profile) int {
		return cmp.Or(cmp.Compare(a.SliceCount, b.SliceCount), cmp.Compare(eighths(a.MemorySizeMB, memory), eighths(b.MemorySizeMB, memory)))
	})
	return all
}

// profileName is NVIDIA's name of a profile: 3g.40gb has three compute slices and
// four of the eight memory slices of 80 GB. Memory is in MiB.
func profileName(compute uint32, memory, whole uint64) string {
	gb := math.Ceil(float64(whole) / 1024)
	return fmt.Sprintf("%dg.%.0fgb", compute, math.Round(gb*float64(eighths(memory, whole))/8))
}

// eighths is the number of a GPU's eight memory slices in an amount of memory. Both
// amounts are without the memory that the driver reserves.
func eighths(memory, whole uint64) uint64 {
	if whole == 0 {
		return 0
	}
	return min(max((16*memory+whole)/(2*whole), 1), 8)
}

// migCores is an instance's part of the GPU's 100 cores, rounded down so that the
// sum is at most 100: of seven slices, one is 14 cores, two 28, three 42, four 57.
func migCores(slices, all uint32) int64 {
	if all == 0 {
		return 0
	}
	return min(100*int64(slices)/int64(all), 100)
}

type migMode struct{ current, pending int }

// migMode is off for GPUs without MIG.
func (d *Driver) migMode(dev gonvml.Device) migMode {
	return queryOr(d, "nvmlDeviceGetMigMode", func() (migMode, gonvml.Return) {
		current, pending, ret := dev.GetMigMode()
		return migMode{current, pending}, ret
	}, migMode{})
}

// instance is a MIG instance: a compute instance in a GPU instance.
type instance struct {
	gpu
	gi, ci int
}

// instances are the MIG instances of a GPU, without those that cannot be read during
// a change.
func (d *Driver) instances(g gpu) []instance {
	if g.Sharing != "mig" {
		return nil
	}
	slices := uint32(0)
	for _, p := range d.profiles(g) {
		slices = max(slices, p.SliceCount)
	}
	count := queryOr(d, "nvmlDeviceGetMaxMigDeviceCount", g.GetMaxMigDeviceCount, 0)
	var all []instance
	residents := map[int]int64{}
	for i := range count {
		dev, ret := g.GetMigDeviceHandleByIndex(i)
		if ret != gonvml.SUCCESS {
			continue
		}
		if found, err := d.instance(g, dev, slices); err == nil {
			residents[found.gi]++
			all = append(all, found)
		}
	}
	for i := range all { // compute instances of one GPU instance share its memory
		all[i].MemoryMiB /= residents[all[i].gi]
	}
	return all
}

func (d *Driver) instance(g gpu, dev gonvml.Device, slices uint32) (instance, error) {
	var failure error
	i := instance{gpu: gpu{dev, g.DeviceReport}}
	i.gi = field(&failure, "GPU instance", dev.GetGpuInstanceId, 0)
	i.ci = field(&failure, "compute instance", dev.GetComputeInstanceId, 0)
	attributes := field(&failure, "attributes", dev.GetAttributes, gonvml.DeviceAttributes{})
	i.UUID = field(&failure, "UUID", dev.GetUUID, "")
	name := field(&failure, "name", dev.GetName, "")
	if failure == nil && i.UUID == "" {
		failure = errNoUUID
	}
	i.Parent, i.Sharing, i.MIGProfiles, i.Peers = g.UUID, "", nil, nil
	i.MemoryMiB = int64(attributes.MemorySizeMB)
	i.Cores = migCores(attributes.ComputeInstanceSliceCount, slices)
	if _, after, named := strings.Cut(name, " MIG "); named {
		i.Profile = after
	} else {
		i.Profile = profileName(attributes.GpuInstanceSliceCount, attributes.MemorySizeMB, uint64(g.MemoryMiB))
	}
	return i, failure
}
