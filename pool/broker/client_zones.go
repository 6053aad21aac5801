package broker

import (
	"slices"
	"strings"

	"weir/models"
	"weir/models/store"
)

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
