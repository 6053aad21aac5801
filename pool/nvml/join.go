package nvml

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/pool/providers"
)

type joined []providers.Machine

// Join combines machines into one, with their devices in order and physical GPUs
// indexed from 0. It fails if one of them fails, or if two report a device with
// the same UUID. GPUs of different machines are never peers.
func Join(machines ...providers.Machine) providers.Machine { return joined(machines) }

// Devices implements [providers.Inventory].
func (j joined) Devices(ctx context.Context) ([]providers.DeviceReport, error) {
	var all []providers.DeviceReport
	seen := map[string]bool{}
	next := 0
	for _, m := range j {
		reports, err := m.Devices(ctx)
		if err != nil {
			return nil, err
		}
		for _, report := range reports {
			if seen[report.UUID] {
				return nil, fmt.Errorf("nvml: the GPU %s is in two machines", report.UUID)
			}
			seen[report.UUID] = true
			if report.Parent == "" {
				next++
			}
			report.Index = next - 1
			all = append(all, report)
		}
	}
	return all, nil
}

// Samples implements [providers.Machine].
func (j joined) Samples(ctx context.Context) ([]providers.Sample, error) {
	var all []providers.Sample
	for _, m := range j {
		samples, err := m.Samples(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, samples...)
	}
	return all, nil
}

// Faults implements [providers.Machine].
func (j joined) Faults() []providers.Fault {
	var all []providers.Fault
	for _, m := range j {
		all = append(all, m.Faults()...)
	}
	return all
}

// Apply implements [providers.Machine]. Each machine gets the orders for its GPUs.
func (j joined) Apply(ctx context.Context, orders []providers.DeviceOrder) error {
	byUUID := map[string]providers.DeviceOrder{}
	for _, o := range orders {
		byUUID[o.UUID] = o
	}
	var failures []error
	for _, m := range j {
		reports, err := m.Devices(ctx)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		var its []providers.DeviceOrder
		for _, r := range reports {
			if o, wanted := byUUID[r.UUID]; wanted {
				its = append(its, o)
				delete(byUUID, r.UUID)
			}
		}
		if len(its) > 0 {
			failures = append(failures, m.Apply(ctx, its))
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(byUUID)) {
		failures = append(failures, fmt.Errorf("there is no GPU %s", uuid))
	}
	return errors.Join(failures...)
}
