package nvml

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"weir/pool/providers"
)

type joined []providers.Inventory

// Join makes one machine of several inventories: their devices one after
// another, with physical GPUs counted anew from 0 and MIG instances bearing
// the index of their GPU. It fails if one of them fails, or if two report a
// device with the same UUID. GPUs of different ones are never peers. An
// inventory that is no [providers.Machine] is listed, but nothing is measured
// there, and an order for it fails.
func Join(inventories ...providers.Inventory) providers.Machine { return joined(inventories) }

// Devices implements [providers.Inventory].
func (j joined) Devices(ctx context.Context) ([]providers.DeviceReport, error) {
	var all []providers.DeviceReport
	seen := map[string]bool{}
	next := 0
	for _, inventory := range j {
		reports, err := inventory.Devices(ctx)
		if err != nil {
			return nil, err
		}
		for _, report := range reports {
			if seen[report.UUID] {
				return nil, fmt.Errorf("nvml: the GPU %s is in two inventories", report.UUID)
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
	for _, inventory := range j {
		if m, ok := inventory.(providers.Machine); ok {
			samples, err := m.Samples(ctx)
			if err != nil {
				return nil, err
			}
			all = append(all, samples...)
		}
	}
	return all, nil
}

// Faults implements [providers.Machine].
func (j joined) Faults() []providers.Fault {
	var all []providers.Fault
	for _, inventory := range j {
		if m, ok := inventory.(providers.Machine); ok {
			all = append(all, m.Faults()...)
		}
	}
	return all
}

// Apply implements [providers.Machine]: each gets the orders for its own GPUs.
func (j joined) Apply(ctx context.Context, orders []providers.DeviceOrder) error {
	byUUID := map[string]providers.DeviceOrder{}
	for _, o := range orders {
		byUUID[o.UUID] = o
	}
	var failures []error
	for _, inventory := range j {
		reports, err := inventory.Devices(ctx)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		m, ok := inventory.(providers.Machine)
		var its []providers.DeviceOrder
		for _, r := range reports {
			if o, wanted := byUUID[r.UUID]; wanted && ok {
				its = append(its, o)
				delete(byUUID, r.UUID)
			}
		}
		if len(its) > 0 {
			failures = append(failures, m.Apply(ctx, its))
		}
	}
	for _, uuid := range slices.Sorted(maps.Keys(byUUID)) {
		failures = append(failures, fmt.Errorf("no GPU %s here takes orders", uuid))
	}
	return errors.Join(failures...)
}
