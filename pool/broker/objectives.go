package broker

import (
	"fmt"
	"slices"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/pool/timeline"
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

// request is what a calendar decides on for a wish, with the ranks of the models of its
// devices and the distances of their machines.
func (s *Service) request(q *store.Queries, d timeline.Demand, task models.TaskType, zone string, devices []timeline.Device) (
	r timeline.Request, err error) {
	preferred := s.rules.Objectives.Models[task]
	if len(preferred) > 0 {
		d.Ranks = map[string]int{}
	}
	for _, dev := range devices {
		if i := slices.IndexFunc(preferred, func(p string) bool { return s.pool.MatchesModel(dev.Model, p) }); i >= 0 {
			d.Ranks[dev.Model] = i
		} else if d.Ranks != nil {
			d.Ranks[dev.Model] = len(preferred)
		}
	}
	r.Demand = d
	if s.rules.Objectives.Placement == Spread {
		r.Preference.Objective = timeline.Spread
	}
	r.Preference.Distance, err = s.distances(q, zone)
	return r, err
}

// distances are the latencies of providers to a client zone in milliseconds; less makes no
// difference to people. nil unless the nearest is wanted.
func (s *Service) distances(q *store.Queries, zone string) (map[int64]int64, error) {
	if s.rules.Objectives.Placement != Nearest || zone == "" {
		return nil, nil
	}
	list, err := q.LatenciesTo(zone, q.Now().Add(-models.LatencyAge))
	distances := make(map[int64]int64, len(list))
	for _, l := range list {
		distances[l.ProviderID] = l.Milliseconds()
	}
	return distances, err
}

// ClientZones are the names of the zones that a request can name; none unless the nearest
// devices are reserved.
func (s *Service) ClientZones() []string {
	if s.rules.Objectives.Placement != Nearest {
		return nil
	}
	return s.rules.Objectives.Zones.Names()
}

// clientZone is the zone of a request: the one that it names, or that of its client's
// address; empty: unknown, or of no importance.
func (s *Service) clientZone(named, address string) (string, error) {
	zones := s.ClientZones()
	switch {
	case len(zones) == 0 && named != "":
		return "", models.Invalid("client_zone", "must be absent: the nearest GPUs are not preferred on this server")
	case len(zones) == 0:
		return "", nil
	case named == "":
		return s.rules.Objectives.Zones.Of(address), nil
	case !slices.Contains(zones, named):
		return "", models.Invalid("client_zone", "must be one of %s", strings.Join(zones, ", "))
	default:
		return named, nil
	}
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
