package nvml

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
)

// SimulatedPrefix begins the UUID of every simulated GPU, and
// SimulatedMIGPrefix that of every instance of one.
const (
	SimulatedPrefix    = "GPU-sim-"
	SimulatedMIGPrefix = "MIG-sim-"
)

// dgx is a simulated machine.
type dgx struct {
	server     func() *server.Server
	links      int     // NVLinks of each GPU, all to switches
	idle, full float64 // watts
}

// simGPU is a mock's GPU with the functions that the mock lacks.
type simGPU struct {
	*server.Device
	dgx  dgx
	busy atomic.Int64 // cores that its shares use, of 100

	recovery gonvml.DeviceGpuRecoveryAction

	mu    sync.Mutex
	slots map[*server.GpuInstance]int // slot of an instance among those of its profile
}

func newSimGPU(dev *server.Device, machine dgx) *simGPU {
	return &simGPU{Device: dev, dgx: machine, slots: map[*server.GpuInstance]int{}}
}

// load is the simulated load, from 0 to 1.
func (g *simGPU) load() float64 { return float64(g.busy.Load()) / 100 }

func (g *simGPU) GetUtilizationRates() (gonvml.Utilization, gonvml.Return) {
	return gonvml.Utilization{Gpu: uint32(g.busy.Load())}, gonvml.SUCCESS
}

func (g *simGPU) GetMemoryInfo() (gonvml.Memory, gonvml.Return) {
	info, ret := g.Device.GetMemoryInfo()
	info.Used = uint64(float64(info.Total) * 0.8 * g.load())
	info.Free = info.Total - info.Used
	return info, ret
}

func (g *simGPU) GetTemperature(gonvml.TemperatureSensors) (uint32, gonvml.Return) {
	return uint32(30 + 40*g.load()), gonvml.SUCCESS
}

func (g *simGPU) GetPowerUsage() (uint32, gonvml.Return) {
	return uint32(1000 * (g.dgx.idle + (g.dgx.full-g.dgx.idle)*g.load())), gonvml.SUCCESS
}

func (g *simGPU) GetComputeRunningProcesses() ([]gonvml.ProcessInfo, gonvml.Return) {
	return nil, gonvml.SUCCESS
}

func (g *simGPU) GetGraphicsRunningProcesses() ([]gonvml.ProcessInfo, gonvml.Return) {
	return nil, gonvml.SUCCESS
}

func (g *simGPU) GetMPSComputeRunningProcesses() ([]gonvml.ProcessInfo, gonvml.Return) {
	return nil, gonvml.SUCCESS
}

func (g *simGPU) GetEccMode() (gonvml.EnableState, gonvml.EnableState, gonvml.Return) {
	return gonvml.FEATURE_ENABLED, gonvml.FEATURE_ENABLED, gonvml.SUCCESS
}

func (g *simGPU) GetTotalEccErrors(gonvml.MemoryErrorType, gonvml.EccCounterType) (uint64, gonvml.Return) {
	return 0, gonvml.SUCCESS
}

func (g *simGPU) GetFieldValues(values []gonvml.FieldValue) gonvml.Return {
	for i, v := range values {
		if v.FieldId != gonvml.FI_DEV_GET_GPU_RECOVERY_ACTION {
			return gonvml.ERROR_NOT_SUPPORTED
		}
		binary.NativeEndian.PutUint32(values[i].Value[:], uint32(g.recovery))
	}
	return gonvml.SUCCESS
}

// GetMemoryAffinity returns node 0 for the first four GPUs of a DGX and node 1 for
// the others.
func (g *simGPU) GetMemoryAffinity(int, gonvml.AffinityScope) ([]uint, gonvml.Return) {
	return []uint{1 << (g.Index / 4)}, gonvml.SUCCESS
}

func (g *simGPU) GetPciInfo() (gonvml.PciInfo, gonvml.Return) {
	info, ret := g.Device.GetPciInfo()
	for i := range min(len(g.PciBusID), len(info.BusId)-1) {
		info.BusId[i] = int8(g.PciBusID[i])
	}
	return info, ret
}

func (g *simGPU) GetNvLinkState(link int) (gonvml.EnableState, gonvml.Return) {
	if link >= g.dgx.links {
		return gonvml.FEATURE_DISABLED, gonvml.ERROR_INVALID_ARGUMENT
	}
	return gonvml.FEATURE_ENABLED, gonvml.SUCCESS
}

func (g *simGPU) GetNvLinkRemoteDeviceType(int) (gonvml.IntNvLinkDeviceType, gonvml.Return) {
	return gonvml.NVLINK_DEVICE_TYPE_SWITCH, gonvml.SUCCESS
}

func (g *simGPU) GetNvLinkRemotePciInfo(int) (gonvml.PciInfo, gonvml.Return) {
	return gonvml.PciInfo{}, gonvml.ERROR_NOT_SUPPORTED
}

// GetGpuInstanceProfileInfo corrects the memory of the mock's profiles, whose sum can
// exceed that of the GPU.
func (g *simGPU) GetGpuInstanceProfileInfo(i int) (gonvml.GpuInstanceProfileInfo, gonvml.Return) {
	info, found := g.Config.MIGProfiles.GpuInstanceProfiles[i]
	if !found {
		return info, gonvml.ERROR_NOT_SUPPORTED
	}
	info.MemorySizeMB = min(info.MemorySizeMB, g.Config.MemoryMB*eighths(info.MemorySizeMB, g.Config.MemoryMB)/8)
	return info, gonvml.SUCCESS
}

// CreateGpuInstance creates an instance if it fits, which the mock does not check. A
// GPU has seven compute and eight memory slices.
func (g *simGPU) CreateGpuInstance(wanted *gonvml.GpuInstanceProfileInfo) (gonvml.GpuInstance, gonvml.Return) {
	g.mu.Lock()
	defer g.mu.Unlock()
	compute, memory := wanted.SliceCount, eighths(wanted.MemorySizeMB, g.Config.MemoryMB)
	taken := map[int]bool{}
	there := g.gpuInstances()
	for _, gi := range there {
		info, _ := g.GetGpuInstanceProfileInfo(int(gi.Info.ProfileId)) // a mock's profile has its index as its id
		compute += info.SliceCount
		memory += eighths(info.MemorySizeMB, g.Config.MemoryMB)
		if gi.Info.ProfileId == wanted.Id {
			taken[g.slots[gi]] = true
		}
	}
	if compute > 7 || memory > 8 || len(taken) >= int(wanted.InstanceCount) {
		return nil, gonvml.ERROR_INSUFFICIENT_RESOURCES
	}
	gi, ret := g.Device.CreateGpuInstance(wanted)
	if ret != gonvml.SUCCESS {
		return nil, ret
	}
	slots := map[*server.GpuInstance]int{}
	for _, old := range there {
		slots[old] = g.slots[old]
	}
	for taken[slots[gi.(*server.GpuInstance)]] {
		slots[gi.(*server.GpuInstance)]++
	}
	g.slots = slots
	return gi, ret
}

// gpuInstances lists the instances in the order of their creation.
func (g *simGPU) gpuInstances() []*server.GpuInstance {
	g.RLock()
	defer g.RUnlock()
	return slices.SortedFunc(maps.Keys(g.GpuInstances), func(a, b *server.GpuInstance) int { return cmp.Compare(a.Info.Id, b.Info.Id) })
}

func (g *simGPU) GetMaxMigDeviceCount() (int, gonvml.Return) { return 7, gonvml.SUCCESS }

func (g *simGPU) GetMigDeviceHandleByIndex(i int) (gonvml.Device, gonvml.Return) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, gi := range g.gpuInstances() {
		gi.RLock()
		empty := len(gi.ComputeInstances) == 0
		gi.RUnlock()
		if empty {
			continue
		}
		if i == 0 {
			return &simInstance{simGPU: g, gi: gi, slot: g.slots[gi]}, gonvml.SUCCESS
		}
		i--
	}
	return nil, gonvml.ERROR_NOT_FOUND
}

// simInstance is a MIG instance of a simulated GPU. Like a real one it has no
// utilization, temperature and power.
type simInstance struct {
	*simGPU
	gi   *server.GpuInstance
	slot int
}

func (i *simInstance) profile() gonvml.GpuInstanceProfileInfo {
	info, _ := i.GetGpuInstanceProfileInfo(int(i.gi.Info.ProfileId))
	return info
}

func (i *simInstance) GetGpuInstanceId() (int, gonvml.Return) {
	return int(i.gi.Info.Id), gonvml.SUCCESS
}
func (i *simInstance) GetComputeInstanceId() (int, gonvml.Return) { return 0, gonvml.SUCCESS }

func (i *simInstance) name() string {
	p := i.profile()
	return profileName(p.SliceCount, p.MemorySizeMB, i.Config.MemoryMB) + suffixes[int(i.gi.Info.ProfileId)]
}

func (i *simInstance) GetName() (string, gonvml.Return) {
	return i.Config.Name + " MIG " + i.name(), gonvml.SUCCESS
}

// GetUUID is deterministic.
func (i *simInstance) GetUUID() (string, gonvml.Return) {
	return identity(SimulatedMIGPrefix, i.simGPU.UUID, i.name(), i.slot), gonvml.SUCCESS
}

func (i *simInstance) GetAttributes() (gonvml.DeviceAttributes, gonvml.Return) {
	p := i.profile()
	return gonvml.DeviceAttributes{GpuInstanceSliceCount: p.SliceCount, ComputeInstanceSliceCount: p.SliceCount, MemorySizeMB: p.MemorySizeMB},
		gonvml.SUCCESS
}

func (i *simInstance) GetMemoryInfo() (gonvml.Memory, gonvml.Return) {
	total := i.profile().MemorySizeMB << 20
	used := uint64(float64(total) * 0.8 * i.load())
	return gonvml.Memory{Total: total, Used: used, Free: total - used}, gonvml.SUCCESS
}

func (i *simInstance) GetUtilizationRates() (gonvml.Utilization, gonvml.Return) {
	return gonvml.Utilization{}, gonvml.ERROR_NOT_SUPPORTED
}

func (i *simInstance) GetTemperature(gonvml.TemperatureSensors) (uint32, gonvml.Return) {
	return 0, gonvml.ERROR_NOT_SUPPORTED
}

func (i *simInstance) GetPowerUsage() (uint32, gonvml.Return) {
	return 0, gonvml.ERROR_NOT_SUPPORTED
}

func identity(prefix, seed, kind string, index int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %s %d", seed, kind, index))
	return fmt.Sprintf("%s%x-%x-%x-%x-%x", prefix, sum[:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16])
}
