package nvml

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// noNode is an unknown NUMA node.
const noNode = -1

// Devices reports every GPU that this process can use, in the driver's order, each
// followed by its MIG instances with the index and minor number of the GPU. Lost
// GPUs, and those that the process cannot open, are omitted. Unsupported values
// stay empty. The context is checked between GPUs, since calls of the driver cannot
// be interrupted.
func (d *Driver) Devices(ctx context.Context) ([]providers.DeviceReport, error) {
	gpus, err := d.gpus(ctx)
	if err != nil {
		return nil, err
	}
	d.join(gpus)
	reports := make([]providers.DeviceReport, 0, len(gpus))
	for _, g := range gpus {
		reports = append(reports, g.DeviceReport)
		for _, i := range d.instances(g) {
			reports = append(reports, i.DeviceReport)
		}
	}
	return reports, nil
}

func (d *Driver) gpus(ctx context.Context) ([]gpu, error) {
	var failure error
	version := field(&failure, "driver version", d.lib.SystemGetDriverVersion, "")
	count, ret := d.lib.DeviceGetCount()
	if ret != gonvml.SUCCESS {
		failure = errors.Join(failure, fmt.Errorf("count: %w", ret))
	}
	if failure != nil {
		return nil, fmt.Errorf("nvml: %w", failure)
	}
	gpus := make([]gpu, 0, max(count, 0))
	for i := range count {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		g, err := d.gpu(ctx, i)
		if errors.Is(err, gonvml.ERROR_GPU_IS_LOST) || errors.Is(err, gonvml.ERROR_NO_PERMISSION) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("nvml: GPU %d: %w", i, err)
		}
		g.Driver = version
		gpus = append(gpus, g)
	}
	return gpus, nil
}

// gpu reads one GPU.
func (d *Driver) gpu(ctx context.Context, index int) (gpu, error) {
	dev, ret := d.lib.DeviceGetHandleByIndex(index)
	if ret != gonvml.SUCCESS {
		return gpu{}, fmt.Errorf("handle: %w", ret)
	}
	var failure error
	r := providers.DeviceReport{
		UUID:      field(&failure, "UUID", dev.GetUUID, ""),
		Index:     index,
		Minor:     field(&failure, "minor number", dev.GetMinorNumber, NoMinor),
		Model:     field(&failure, "name", dev.GetName, ""),
		MemoryMiB: int64(field(&failure, "memory", dev.GetMemoryInfo, gonvml.Memory{}).Total >> 20),
		PCIBusID:  busID(field(&failure, "PCI address", dev.GetPciInfo, gonvml.PciInfo{})),
		Simulated: d.simulated,
	}
	if failure == nil && r.UUID == "" {
		failure = errNoUUID
	}
	if failure != nil {
		return gpu{}, failure
	}
	r.Architecture = architectures[queryOr(d, "nvmlDeviceGetArchitecture", dev.GetArchitecture, gonvml.DEVICE_ARCH_UNKNOWN)]
	r.NUMA = d.numa(dev, r.PCIBusID)
	r.ECC, r.ECCErrors = d.ecc(dev)
	for _, p := range d.profiles(dev) {
		r.MIGProfiles = append(r.MIGProfiles, p.name)
	}
	r.Sharing, r.Trouble = d.currentSharing(ctx, dev, r.UUID)
	d.mu.Lock()
	r.SharingError = d.refused[r.UUID]
	d.mu.Unlock()
	return gpu{dev, r}, nil
}

// currentSharing is the sharing mode of a GPU in effect, and its errors.
func (d *Driver) currentSharing(ctx context.Context, dev gonvml.Device, uuid string) (sharing, trouble string) {
	var wrong []string
	mode := d.migMode(dev)
	if mode.current != mode.pending {
		wrong = append(wrong, "a change of its MIG mode is pending: the GPU must be reset, or the machine restarted")
	}
	if failure := d.failure(dev, uuid); failure != "" {
		wrong = append(wrong, failure)
	}
	switch {
	case mode.current == gonvml.DEVICE_MIG_ENABLE:
		sharing = "mig"
	case d.sharedByMPS(ctx, uuid):
		sharing = "mps"
	}
	return sharing, strings.Join(wrong, "; ")
}

// sharedByMPS reports whether a device's MPS daemon responds.
func (d *Driver) sharedByMPS(ctx context.Context, uuid string) bool {
	if d.simulated {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.ordered[uuid]
	}
	return d.mps.alive(ctx, uuid)
}

var architectures = map[gonvml.DeviceArchitecture]string{
	gonvml.DEVICE_ARCH_KEPLER:    "Kepler",
	gonvml.DEVICE_ARCH_MAXWELL:   "Maxwell",
	gonvml.DEVICE_ARCH_PASCAL:    "Pascal",
	gonvml.DEVICE_ARCH_VOLTA:     "Volta",
	gonvml.DEVICE_ARCH_TURING:    "Turing",
	gonvml.DEVICE_ARCH_AMPERE:    "Ampere",
	gonvml.DEVICE_ARCH_ADA:       "Ada",
	gonvml.DEVICE_ARCH_HOPPER:    "Hopper",
	gonvml.DEVICE_ARCH_BLACKWELL: "Blackwell",
	gonvml.DEVICE_ARCH_RUBIN:     "Rubin",
}

// busID is the PCI address, a C string in info.
func busID(info gonvml.PciInfo) string {
	var b strings.Builder
	for _, c := range info.BusId {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}

// pciAddress is a PCI address in Linux' form: the driver writes the domain with
// eight digits, Linux with four unless it needs more.
func pciAddress(busID string) string {
	domain, rest, _ := strings.Cut(strings.ToLower(busID), ":")
	for len(domain) > 4 && domain[0] == '0' {
		domain = domain[1:]
	}
	return domain + ":" + rest
}

// numa is the nearest NUMA node: from the driver if it returns exactly one, or else
// from Linux. (The driver's "NUMA node" of a device is that of the GPU's own
// memory.)
func (d *Driver) numa(dev gonvml.Device, bus string) int {
	const nodes = 1024
	words := queryOr(d, "nvmlDeviceGetMemoryAffinity", func() ([]uint, gonvml.Return) {
		return dev.GetMemoryAffinity(nodes, gonvml.AFFINITY_SCOPE_NODE)
	}, nil)
	node, set := noNode, 0
	for i, w := range words {
		if w != 0 {
			set += bits.OnesCount(w)
			node = i*bits.UintSize + bits.TrailingZeros(w)
		}
	}
	if set == 1 {
		return node
	}
	text, err := os.ReadFile(filepath.Join(d.cfg.SysRoot, "sys/bus/pci/devices", pciAddress(bus), "numa_node"))
	if node, bad := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && bad == nil && node >= 0 {
		return node
	}
	return noNode
}

// ecc is the ECC mode, and the number of uncorrected errors since the driver started.
func (d *Driver) ecc(dev gonvml.Device) (mode string, failures int64) {
	state, ret := query(d, "nvmlDeviceGetEccMode", func() (gonvml.EnableState, gonvml.Return) {
		current, _, ret := dev.GetEccMode()
		return current, ret
	})
	switch {
	case ret != gonvml.SUCCESS:
		return "", 0
	case state != gonvml.FEATURE_ENABLED:
		return "off", 0
	}
	return "on", int64(queryOr(d, "nvmlDeviceGetTotalEccErrors", func() (uint64, gonvml.Return) {
		return dev.GetTotalEccErrors(gonvml.MEMORY_ERROR_TYPE_UNCORRECTED, gonvml.VOLATILE_ECC)
	}, 0))
}

// join sets the NVLink peers of GPUs: those at both ends of a link, and all GPUs
// whose links all end at switches.
func (d *Driver) join(gpus []gpu) {
	byAddress, fabric := map[string]int{}, []int{}
	ends := make([][]string, len(gpus))
	for i, g := range gpus {
		byAddress[pciAddress(g.PCIBusID)] = i
		switched := false
		if ends[i], switched = d.links(g); switched {
			fabric = append(fabric, i)
		}
	}
	for i := range gpus {
		joined := map[int]bool{}
		for _, address := range ends[i] {
			if other, here := byAddress[address]; here {
				joined[other] = true
			}
		}
		if slices.Contains(fabric, i) {
			for _, other := range fabric {
				joined[other] = true
			}
		}
		for other := range gpus {
			if joined[other] && other != i {
				gpus[i].Peers = append(gpus[i].Peers, gpus[other].UUID)
			}
		}
	}
}

// links are the PCI addresses at the other ends of a GPU's active NVLinks, and
// whether all of them end at switches.
func (d *Driver) links(g gpu) (ends []string, switched bool) {
	for link := range gonvml.NVLINK_MAX_LINKS {
		state, ret := query(d, "nvmlDeviceGetNvLinkState", func() (gonvml.EnableState, gonvml.Return) { return g.GetNvLinkState(link) })
		if ret == gonvml.ERROR_INVALID_ARGUMENT || ret == gonvml.ERROR_NOT_SUPPORTED || ret == gonvml.ERROR_FUNCTION_NOT_FOUND {
			break // there are no more
		}
		if ret != gonvml.SUCCESS || state != gonvml.FEATURE_ENABLED {
			continue
		}
		kind := queryOr(d, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (gonvml.IntNvLinkDeviceType, gonvml.Return) {
			return g.GetNvLinkRemoteDeviceType(link)
		}, gonvml.NVLINK_DEVICE_TYPE_UNKNOWN)
		if kind == gonvml.NVLINK_DEVICE_TYPE_SWITCH {
			switched = true
			continue
		}
		far := queryOr(d, "nvmlDeviceGetNvLinkRemotePciInfo", func() (gonvml.PciInfo, gonvml.Return) { return g.GetNvLinkRemotePciInfo(link) },
			gonvml.PciInfo{})
		ends = append(ends, pciAddress(busID(far)))
	}
	return ends, switched && len(ends) == 0
}
