package nvml

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// maxProcesses bounds the processes in a sample, those that use the most memory.
const maxProcesses = 64

// Samples measures every device that Devices reports; their age is 0. Unsupported
// values are 0, such as the utilization of MIG instances.
func (d *Driver) Samples(ctx context.Context) ([]providers.Sample, error) {
	gpus, err := d.gpus(ctx)
	if err != nil {
		return nil, err
	}
	samples := make([]providers.Sample, 0, len(gpus))
	for _, g := range gpus {
		samples = append(samples, d.sample(g))
		for _, i := range d.instances(g) {
			samples = append(samples, d.sample(i.gpu))
		}
	}
	return samples, nil
}

func (d *Driver) sample(g gpu) providers.Sample {
	s := providers.Sample{UUID: g.UUID}
	s.Utilisation = int64(queryOr(d, "nvmlDeviceGetUtilizationRates", g.GetUtilizationRates, gonvml.Utilization{}).Gpu)
	s.MemoryUsedMiB = int64(queryOr(d, "nvmlDeviceGetMemoryInfo", g.GetMemoryInfo, gonvml.Memory{}).Used >> 20)
	s.Temperature = int64(queryOr(d, "nvmlDeviceGetTemperature", func() (uint32, gonvml.Return) {
		return g.GetTemperature(gonvml.TEMPERATURE_GPU)
	}, 0))
	s.PowerMW = int64(queryOr(d, "nvmlDeviceGetPowerUsage", g.GetPowerUsage, 0))
	list, _ := d.processes(g)
	for _, p := range list[:min(len(list), maxProcesses)] {
		p.Name = d.processName(p.PID)
		s.Processes = append(s.Processes, p)
	}
	return s
}

// processes lists the processes on a device, largest first, without names. With an
// error the list may be incomplete.
func (d *Driver) processes(dev gonvml.Device) ([]providers.Process, error) {
	var failure error
	inUse := map[int64]int64{}
	for symbol, get := range map[string]func() ([]gonvml.ProcessInfo, gonvml.Return){
		"nvmlDeviceGetComputeRunningProcesses":    dev.GetComputeRunningProcesses,
		"nvmlDeviceGetGraphicsRunningProcesses":   dev.GetGraphicsRunningProcesses,
		"nvmlDeviceGetMPSComputeRunningProcesses": dev.GetMPSComputeRunningProcesses,
	} {
		infos := field(&failure, "processes", func() ([]gonvml.ProcessInfo, gonvml.Return) { return query(d, symbol, get) }, nil)
		for _, p := range infos {
			used := int64(0)
			if p.UsedGpuMemory != math.MaxUint64 { // the driver's "not available"
				used = int64(p.UsedGpuMemory >> 20)
			}
			inUse[int64(p.Pid)] = max(inUse[int64(p.Pid)], used)
		}
	}
	list := make([]providers.Process, 0, len(inUse))
	for pid, used := range inUse {
		list = append(list, providers.Process{PID: pid, MemoryMiB: used})
	}
	slices.SortFunc(list, func(a, b providers.Process) int {
		return cmp.Or(cmp.Compare(b.MemoryMiB, a.MemoryMiB), cmp.Compare(a.PID, b.PID))
	})
	return list, failure
}

// idle returns an error if processes run on a device; what names the operation that
// would end them.
func (d *Driver) idle(dev gonvml.Device, what string) error {
	list, err := d.processes(dev)
	if err != nil {
		return fmt.Errorf("%s: it cannot be told what runs on it: %w", what, err)
	}
	if len(list) > 0 {
		return &busyError{what, fmt.Sprintf("%d, such as %d (%s)", len(list), list[0].PID, d.processName(list[0].PID))}
	}
	return nil
}

// busyError says that processes run on a device, and for the log of its machine which.
type busyError struct{ what, processes string }

func (e *busyError) Error() string {
	return e.what + " while processes run on it: " + e.processes + "; it is done when they have ended"
}

// reason is the same for as long as any process runs, and names none.
func (e *busyError) reason() string {
	return e.what + " while processes run on it; it is done when they have ended"
}

// processName is the name of a process in Linux, at most 15 bytes; empty if it has
// ended or is not visible.
func (d *Driver) processName(pid int64) string {
	name, err := os.ReadFile(filepath.Join(d.cfg.SysRoot, "proc", strconv.FormatInt(pid, 10), "comm"))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(name)), "?")
}
