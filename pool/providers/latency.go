package providers

import (
	"time"

	"weir/models"
	"weir/models/store"
)

// probes are the addresses in client zones to which machines measure their latency.
func probes(zones models.ClientZones) []Probe {
	return models.Map(zones, func(z models.ClientZone) Probe { return Probe{z.Name, z.Address} })
}

// saveLatencies stores the latencies of a provider to zones; those to other zones are of
// orders that are outdated.
func saveLatencies(q *store.Queries, provider int64, measured []Latency, zones models.ClientZones) error {
	now := q.Now()
	known, err := q.LatenciesOf(provider, now.Add(-models.LatencyAge))
	if err != nil {
		return err
	}
	before := map[string]models.ProviderLatency{}
	for _, l := range known {
		before[l.Zone] = l
	}
	after := map[string]models.ProviderLatency{}
	for _, m := range measured {
		l := models.ProviderLatency{ProviderID: provider, Zone: m.Zone, Micros: max(int64(m.Time/time.Microsecond), 1), MeasuredAt: now}
		after[m.Zone] = before[m.Zone].After(l)
	}
	var list []models.ProviderLatency
	for _, name := range zones.Names() { // in one order, so that transactions lock rows in it
		if l, measured := after[name]; measured {
			list = append(list, l)
		}
	}
	if len(list) > 0 {
		q.Touch("telemetry", provider)
	}
	return q.SaveLatencies(list)
}
