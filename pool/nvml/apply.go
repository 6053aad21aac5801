package nvml

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// Apply sets the sharing modes of devices. It ends no processes: MPS daemons quit
// when they have no clients, and MIG instances are removed when they are idle. MPS
// and MIG need root, and MPS a Config.MPSDir. The error names every GPU whose order
// failed, as its report does until the next orders; the other orders are applied.
//
// On simulated GPUs, MPS is only recorded, and the load is DeviceOrder.Busy.
func (d *Driver) Apply(ctx context.Context, orders []providers.DeviceOrder) error {
	gpus, err := d.gpus(ctx)
	if err != nil {
		return err
	}
	var failures []error
	refused := map[string]string{}
	for _, o := range orders {
		i := slices.IndexFunc(gpus, func(g gpu) bool { return g.UUID == o.UUID })
		if i < 0 {
			failures = append(failures, fmt.Errorf("there is no GPU %s", o.UUID))
		} else if err := d.apply(ctx, gpus[i], o); err != nil {
			failures, refused[o.UUID] = append(failures, fmt.Errorf("GPU %s: %w", o.UUID, err)), err.Error()
			if busy, ok := errors.AsType[*busyError](err); ok {
				refused[o.UUID] = busy.reason()
			}
		}
	}
	d.mu.Lock()
	d.refused = refused
	d.mu.Unlock()
	return errors.Join(failures...)
}

func (d *Driver) apply(ctx context.Context, g gpu, o providers.DeviceOrder) error {
	if sim, ok := g.Device.(*simGPU); ok {
		sim.busy.Store(o.Busy)
	}
	switch o.Sharing {
	case "exclusive", "time-slicing":
		return errors.Join(d.endMPS(ctx, g), d.endMIG(g))
	case "mps":
		if err := d.endMIG(g); err != nil {
			return err
		}
		return d.beginMPS(ctx, g)
	case "mig":
		if len(g.MIGProfiles) == 0 {
			return errors.New("it cannot be cut into MIG instances")
		}
		if err := d.endMPS(ctx, g); err != nil {
			return err
		}
		return d.partition(g, o.Layout)
	default:
		return fmt.Errorf("%q is no way to share it: there are exclusive, time-slicing, mps, mig", o.Sharing)
	}
}

// beginMPS starts the daemon of a device. As NVIDIA recommends (docs.nvidia.com/
// deploy/mps), the compute mode allows only one process, the daemon's server, so
// that no program can bypass it. Only root can set that mode.
func (d *Driver) beginMPS(ctx context.Context, g gpu) error {
	if d.simulated {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.ordered[g.UUID] = true
		return nil
	}
	if !d.mps.alive(ctx, g.UUID) {
		if err := d.mps.usable(g.UUID); err != nil {
			return err
		}
		if err := d.idle(g, "MPS cannot begin"); err != nil {
			return err
		}
		if err := d.mps.claim(g.UUID); err != nil {
			return err
		}
		if err := setComputeMode(g, gonvml.COMPUTEMODE_EXCLUSIVE_PROCESS); err != nil {
			return errors.Join(err, d.mps.disclaim(g.UUID))
		}
	}
	return d.mps.setWanted(ctx, g.UUID)
}

// endMPS stops the daemon of a device, if it is ours, and resets the compute mode, also where the
// daemon did not start or has ended by itself.
func (d *Driver) endMPS(ctx context.Context, g gpu) error {
	if d.simulated {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.ordered, g.UUID)
		return nil
	}
	ours, err := d.mps.quit(ctx, g.UUID)
	if err != nil || !ours {
		return err
	}
	if err := setComputeMode(g, gonvml.COMPUTEMODE_DEFAULT); err != nil {
		return err
	}
	return os.RemoveAll(filepath.Join(d.mps.dir, g.UUID))
}

func setComputeMode(g gpu, mode gonvml.ComputeMode) error {
	switch ret := g.SetComputeMode(mode); ret {
	case gonvml.SUCCESS:
		return nil
	case gonvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("its compute mode may be set by root only: %w", ret)
	default:
		return fmt.Errorf("set its compute mode: %w", ret)
	}
}

// endMIG removes the instances of a GPU and turns the mode off.
func (d *Driver) endMIG(g gpu) error {
	mode := d.migMode(g)
	if mode == (migMode{}) {
		return nil
	}
	if mode.current == gonvml.DEVICE_MIG_ENABLE {
		if err := d.idleInstances(g, "MIG cannot end"); err != nil {
			return err
		}
		if err := d.arrange(g, nil); err != nil {
			return err
		}
	}
	return d.setMIG(g, gonvml.DEVICE_MIG_DISABLE)
}

func (d *Driver) idleInstances(g gpu, what string) error {
	if err := d.idle(g, what); err != nil {
		return err
	}
	for _, i := range d.instances(g) {
		if err := d.idle(i, what); err != nil {
			return err
		}
	}
	return nil
}

// setMIG turns the mode on or off. Some GPUs need a reset.
func (d *Driver) setMIG(g gpu, mode int) error {
	switch status, ret := g.SetMigMode(mode); {
	case ret == gonvml.ERROR_NO_PERMISSION:
		return fmt.Errorf("its MIG mode may be set by root only: %w", ret)
	case ret != gonvml.SUCCESS:
		return fmt.Errorf("set its MIG mode: %w", ret)
	case status != gonvml.SUCCESS && status != gonvml.ERROR_RESET_REQUIRED:
		return fmt.Errorf("set its MIG mode: %w", status)
	}
	if is := d.migMode(g); is.current != mode {
		return errors.New("its MIG mode changes when it is reset (nvidia-smi --gpu-reset) or the machine restarted")
	}
	return nil
}

// partition turns MIG on and creates the instances of a layout. Existing instances of the
// layout stay, unless they block new ones and all are idle.
func (d *Driver) partition(g gpu, layout []string) error {
	wanted, err := d.layout(g, layout)
	if err != nil {
		return err
	}
	if on := (migMode{gonvml.DEVICE_MIG_ENABLE, gonvml.DEVICE_MIG_ENABLE}); d.migMode(g) != on {
		if d.migMode(g).current != on.current {
			if err := d.idle(g, "MIG cannot begin"); err != nil {
				return err
			}
		}
		if err := d.setMIG(g, gonvml.DEVICE_MIG_ENABLE); err != nil {
			return err
		}
		g.Sharing = "mig"
	}
	if d.isPartitioned(g, wanted) {
		return nil
	}
	err = d.arrange(g, wanted)
	if !errors.Is(err, gonvml.ERROR_INSUFFICIENT_RESOURCES) || d.idleInstances(g, "") != nil {
		return err
	}
	if err := d.arrange(g, nil); err != nil {
		return err
	}
	return d.arrange(g, wanted)
}

func (d *Driver) isPartitioned(g gpu, wanted []profile) bool {
	var is, want []string
	for _, i := range d.instances(g) {
		is = append(is, i.Profile)
	}
	for _, p := range wanted {
		want = append(want, p.name)
	}
	slices.Sort(is)
	slices.Sort(want)
	return slices.Equal(is, want)
}

// layout finds the profiles of a layout, largest first.
func (d *Driver) layout(g gpu, names []string) ([]profile, error) {
	byName := map[string]profile{}
	for _, p := range d.profiles(g) {
		byName[p.name] = p
	}
	var wanted []profile
	for _, name := range names {
		p, found := byName[strings.ToLower(strings.TrimSpace(name))]
		if !found {
			return nil, fmt.Errorf("it has no MIG profile %q: there are %s", name, strings.Join(slices.Sorted(maps.Keys(byName)), ", "))
		}
		wanted = append(wanted, p)
	}
	slices.SortStableFunc(wanted, func(a, b profile) int {
		return cmp.Or(cmp.Compare(b.SliceCount, a.SliceCount), cmp.Compare(b.MemorySizeMB, a.MemorySizeMB))
	})
	return wanted, nil
}

// arrange removes GPU instances that are not wanted, and creates missing ones.
func (d *Driver) arrange(g gpu, wanted []profile) error {
	missing := map[uint32]int{}
	for _, p := range wanted {
		missing[p.Id]++
	}
	var failures []error
	for _, p := range d.profiles(g) {
		there, ret := g.GetGpuInstances(&p.GpuInstanceProfileInfo)
		if ret != gonvml.SUCCESS {
			failures = append(failures, fmt.Errorf("list its instances %s: %w", p.name, ret))
			continue
		}
		for _, gi := range there {
			var err error
			if missing[p.Id] > 0 {
				missing[p.Id]--
				err = fill(gi, p)
			} else {
				err = d.destroy(g, gi, p)
			}
			failures = append(failures, err)
		}
	}
	if err := errors.Join(failures...); err != nil {
		return err
	}
	for _, p := range wanted {
		if missing[p.Id] > 0 {
			missing[p.Id]--
			if err := create(g, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func create(g gpu, p profile) error {
	gi, ret := g.CreateGpuInstance(&p.GpuInstanceProfileInfo)
	if ret != gonvml.SUCCESS {
		return fmt.Errorf("the driver refuses an instance %s: %w", p.name, ret)
	}
	if err := fill(gi, p); err != nil {
		gi.Destroy()
		return err
	}
	return nil
}

// fill creates a compute instance over all of a GPU instance, unless it has one.
func fill(gi gonvml.GpuInstance, p profile) error {
	list, err := computeInstances(gi)
	if err != nil || len(list) > 0 {
		return err
	}
	for i := range gonvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, ret := gi.GetComputeInstanceProfileInfo(i, gonvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if ret != gonvml.SUCCESS || info.SliceCount != p.SliceCount {
			continue
		}
		if _, ret := gi.CreateComputeInstance(&info); ret != gonvml.SUCCESS {
			return fmt.Errorf("the driver refuses a compute instance in %s: %w", p.name, ret)
		}
		return nil
	}
	return fmt.Errorf("the driver has no compute instance over all of %s", p.name)
}

func computeInstances(gi gonvml.GpuInstance) ([]gonvml.ComputeInstance, error) {
	var all []gonvml.ComputeInstance
	for i := range gonvml.COMPUTE_INSTANCE_PROFILE_COUNT {
		info, ret := gi.GetComputeInstanceProfileInfo(i, gonvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
		if ret != gonvml.SUCCESS || info.InstanceCount == 0 {
			continue
		}
		list, ret := gi.GetComputeInstances(&info)
		if ret != gonvml.SUCCESS {
			return nil, fmt.Errorf("list compute instances: %w", ret)
		}
		all = append(all, list...)
	}
	return all, nil
}

// destroy removes an idle GPU instance.
func (d *Driver) destroy(g gpu, gi gonvml.GpuInstance, p profile) error {
	info, ret := gi.GetInfo()
	if ret != gonvml.SUCCESS {
		return fmt.Errorf("instance %s: %w", p.name, ret)
	}
	for _, i := range d.instances(g) {
		if i.gi != int(info.Id) {
			continue
		}
		if err := d.idle(i, "the instance "+i.UUID+" ("+p.name+") cannot be removed"); err != nil {
			return err
		}
	}
	list, err := computeInstances(gi)
	if err != nil {
		return err
	}
	for _, ci := range list {
		if ret := ci.Destroy(); ret != gonvml.SUCCESS {
			return fmt.Errorf("remove a compute instance of %s: %w", p.name, ret)
		}
	}
	if ret := gi.Destroy(); ret != gonvml.SUCCESS {
		return fmt.Errorf("remove the instance %s: %w", p.name, ret)
	}
	return nil
}
