package providers

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Spans of telemetry.
const (
	LastHour   = "hour"
	LastDay    = "day"
	LastWeek   = "week"
	LastMonth  = "month"
	LastMonths = "months"
)

// Spans are the spans of History, the shortest first.
var Spans = []string{LastHour, LastDay, LastWeek, LastMonth, LastMonths}

// Lengths are how long they are.
var Lengths = map[string]time.Duration{LastHour: time.Hour, LastDay: 24 * time.Hour, LastWeek: 7 * 24 * time.Hour,
	LastMonth: 30 * 24 * time.Hour, LastMonths: 90 * 24 * time.Hour}

// rings are the resolutions of telemetry, by span: 5 seconds, minutes, hours. The
// slot of a bucket is its number modulo the length of the ring.
var rings = map[string]struct{ step, length int64 }{LastHour: {5, 720}, LastDay: {60, 1440}, LastMonths: {3600, 2160}}

// saveMeasurements stores samples and latencies in a transaction without the pool's lock, so
// that it does not delay placements.
func saveMeasurements(ctx context.Context, db *store.Store, provider int64, b Heartbeat, zones models.ClientZones) error {
	if len(b.Samples)+len(b.Latencies) == 0 {
		return nil
	}
	return db.InTx(ctx, func(q *store.Queries) error {
		return errors.Join(saveSamples(q, provider, b.Samples), saveLatencies(q, provider, b.Latencies, zones))
	})
}

func saveSamples(q *store.Queries, provider int64, samples []Sample) error {
	if len(samples) == 0 {
		return nil
	}
	devices, err := q.DevicesOf(provider)
	if err != nil {
		return err
	}
	ids := map[string]int64{}
	for _, d := range devices {
		ids[d.UUID] = d.ID
	}
	now := q.Now()
	if err := q.SaveStates(latest(samples, ids, now)); err != nil {
		return err
	}
	q.Touch("telemetry", provider)
	return q.AddTelemetry(buckets(samples, ids, now))
}

// saveFaults stores the last XID of each device of a provider.
func saveFaults(q *store.Queries, provider int64, faults []Fault) error {
	if len(faults) == 0 {
		return nil
	}
	newest := map[string]Fault{}
	for _, f := range faults {
		if old, have := newest[f.UUID]; !have || f.Age <= old.Age {
			newest[f.UUID] = f
		}
	}
	devices, err := q.DevicesOf(provider)
	if err != nil {
		return err
	}
	for _, d := range devices {
		f, reported := newest[d.UUID]
		at := q.Now().Add(-max(f.Age, 0))
		if !reported || d.XIDAt != nil && at.Before(*d.XIDAt) {
			continue
		}
		if err := q.RecordFault(d, f.XID, at); err != nil {
			return err
		}
	}
	return nil
}

// latest is the newest sample of each known device, sorted by device, so that
// concurrent transactions lock rows in the same order.
func latest(samples []Sample, ids map[string]int64, now time.Time) []models.DeviceState {
	newest := map[int64]Sample{}
	for _, s := range samples {
		id, known := ids[s.UUID]
		if old, have := newest[id]; known && (!have || s.Age <= old.Age) {
			newest[id] = s
		}
	}
	var states []models.DeviceState
	for id, s := range newest {
		state := models.DeviceState{DeviceID: id, At: now.Add(-max(s.Age, 0)), Utilisation: s.Utilisation, MemoryUsedMiB: s.MemoryUsedMiB,
			Temperature: s.Temperature, PowerMW: s.PowerMW}
		for _, proc := range s.Processes {
			state.Processes = append(state.Processes, models.GPUProcess(proc))
		}
		states = append(states, state)
	}
	slices.SortFunc(states, func(a, b models.DeviceState) int { return cmp.Compare(a.DeviceID, b.DeviceID) })
	return states
}

// buckets aggregates samples into the buckets of the rings, sorted. Of two buckets
// in one slot, the newer is kept.
func buckets(samples []Sample, ids map[string]int64, now time.Time) []models.Telemetry {
	type key struct{ device, step, slot int64 }
	sums := map[key]models.Telemetry{}
	for _, s := range samples {
		id, known := ids[s.UUID]
		if !known {
			continue
		}
		at := now.Add(-max(s.Age, 0)).Unix()
		for _, ring := range rings {
			number := at / ring.step
			k, begin := key{id, ring.step, number % ring.length}, time.Unix(number*ring.step, 0).UTC()
			b, have := sums[k]
			if !have || b.At.Before(begin) {
				b = models.Telemetry{DeviceID: id, Step: ring.step, Slot: k.slot, At: begin}
			}
			if b.At.Equal(begin) {
				sums[k] = add(b, s)
			}
		}
	}
	return slices.SortedFunc(maps.Values(sums), func(a, b models.Telemetry) int {
		return cmp.Or(cmp.Compare(a.DeviceID, b.DeviceID), cmp.Compare(a.Step, b.Step), cmp.Compare(a.Slot, b.Slot))
	})
}

func add(b models.Telemetry, s Sample) models.Telemetry {
	b.Samples++
	b.UtilisationSum, b.UtilisationMax = b.UtilisationSum+s.Utilisation, max(b.UtilisationMax, s.Utilisation)
	b.MemorySum, b.MemoryMax = b.MemorySum+s.MemoryUsedMiB, max(b.MemoryMax, s.MemoryUsedMiB)
	b.TemperatureSum, b.TemperatureMax = b.TemperatureSum+s.Temperature, max(b.TemperatureMax, s.Temperature)
	b.PowerSum, b.PowerMax = b.PowerSum+s.PowerMW, max(b.PowerMax, s.PowerMW)
	return b
}

// History is a device's telemetry over the last hour (by 5 seconds), day (by
// minutes), week, month or ninety days (by hours), oldest first. Times without samples
// have no buckets.
func (s *Service) History(ctx context.Context, actor policies.Actor, device int64, span string) ([]models.Telemetry, error) {
	if err := s.access.Check(actor, policies.Platform, policies.PoolRead); err != nil {
		return nil, err
	}
	length, ok := Lengths[span]
	if !ok {
		return nil, models.Invalid("span", "must be one of %s", strings.Join(Spans, ", "))
	}
	ring, ok := rings[span]
	if !ok {
		ring = rings[LastMonths]
	}
	q := s.store.Read(ctx)
	if _, err := q.Device(device); err != nil {
		return nil, err
	}
	return q.Telemetry(device, ring.step, s.store.Now().Add(-length))
}
