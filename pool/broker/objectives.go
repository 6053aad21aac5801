package broker

import (
	"fmt"
	"strings"

	"weir/models"
)

// Objectives decide between devices that are free at the same time. Administrators choose
// them.
type Objectives struct {
	Placement Placement
	// Models are the GPU models that each task type prefers, the best first; other models
	// are acceptable, too.
	Models map[models.TaskType][]string
	// Zones are those of clients, for Nearest.
	Zones models.ClientZones
}

// Placement is which devices are reserved of those that are free at the same time.
type Placement string

// Placements.
const (
	Pack    Placement = "pack"    // those with the least left, so that others stay whole
	Spread  Placement = "spread"  // those with the most left
	Nearest Placement = "nearest" // of the machines with the lowest latency to the client; then as Pack
)

// ParsePlacement returns the placement of a name.
func ParsePlacement(name string) (Placement, error) {
	if p := Placement(name); p == Pack || p == Spread || p == Nearest {
		return p, nil
	}
	return Pack, fmt.Errorf("%q must be pack, spread or nearest", name)
}

// explain says by which objectives the devices of a wish are chosen.
func (o Objectives) explain(task models.TaskType, zone string) models.Text {
	order := models.Say("the least capacity left")
	switch {
	case o.Placement == Spread:
		order = models.Say("the most capacity left")
	case o.Placement == Nearest && zone == "":
		order = models.Say("the least capacity left, because the address of the client is in no client zone")
	case o.Placement == Nearest:
		order = models.Say("the lowest latency to %s, then the least capacity left", zone)
	}
	if preferred := o.Models[task]; len(preferred) > 0 {
		order = models.Say("GPU models %s, then %s", strings.Join(preferred, ", "), order)
	}
	return models.Say("The order of GPUs that are available at the same time: %s.", order)
}
