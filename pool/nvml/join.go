package nvml

import (
	"context"
	"fmt"

	"weir/pool"
)

type joined []pool.Inventory

// Join makes one inventory of several: their devices one after another, with
// indexes counted anew from 0. It fails if one of them fails, or if two
// report a GPU with the same UUID.
func Join(inventories ...pool.Inventory) pool.Inventory { return joined(inventories) }

// Devices implements [pool.Inventory].
func (j joined) Devices(ctx context.Context) ([]pool.DeviceReport, error) {
	var all []pool.DeviceReport
	seen := map[string]bool{}
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
			report.Index = len(all)
			all = append(all, report)
		}
	}
	return all, nil
}
