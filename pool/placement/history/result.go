package history

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"
)

// MaxPoints bounds the series of a result.
const MaxPoints = 240

// Result is how a replay went.
type Result struct {
	Machines      int       `json:"machines"`
	GPUs          int       `json:"gpus"`
	CapacityCores int64     `json:"capacity_gpu_cores"` // that the pool could give
	Jobs          int       `json:"jobs"`
	Placed        int       `json:"placed"`
	Waited        int       `json:"waited"` // of those placed, not at once
	Refused       int       `json:"refused"`
	Waits         Waits     `json:"waits"`
	CoreHours     float64   `json:"gpu_core_hours"` // served
	From          time.Time `json:"from"`           // the first arrival
	To            time.Time `json:"to"`             // the end of the last point
	Points        []Point   `json:"points"`
	Unmet         []Unmet   `json:"unmet"`
}

// MeanInUse is the GPU cores that were in use on average.
func (r Result) MeanInUse() (sum float64) {
	for _, p := range r.Points {
		sum += p.InUse / float64(len(r.Points))
	}
	return sum
}

// Waits is how long the jobs that were placed had waited.
type Waits struct {
	Mean   Seconds `json:"mean_seconds"`
	Median Seconds `json:"median_seconds"`
	P90    Seconds `json:"p90_seconds"`
	Max    Seconds `json:"max_seconds"`
}

// Seconds is a duration that JSON shows in seconds.
type Seconds time.Duration

// MarshalJSON writes the seconds as a number.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// Point is the pool's mean state from At to the next point, in GPU cores.
type Point struct {
	At       time.Time `json:"at"`
	Capacity float64   `json:"capacity_gpu_cores"`
	InUse    float64   `json:"gpu_cores_in_use"`
	Waiting  float64   `json:"waiting_gpu_cores"` // asked for by who waited
}

// Unmet is demand of one model and size that was not met, or not at once.
type Unmet struct {
	Model            string  `json:"gpu_model"` // as asked for; empty: any
	GPUs             int     `json:"gpus"`
	Cores            int64   `json:"cores"`          // per GPU
	MemoryMiB        int64   `json:"gpu_memory_mib"` // per GPU; 0: in proportion
	Refused          int     `json:"refused"`
	RefusedCoreHours float64 `json:"refused_gpu_core_hours"` // that they would have held
	Waited           int     `json:"waited"`
	WaitedCoreHours  float64 `json:"waited_gpu_core_hours"` // asked for × waited
	LongestWait      Seconds `json:"longest_wait_seconds"`
}

// waitsOf sorts its argument.
func waitsOf(waits []time.Duration) (w Waits) {
	if len(waits) == 0 {
		return w
	}
	slices.Sort(waits)
	mean := 0.0
	for _, wait := range waits {
		mean += float64(wait) / float64(len(waits))
	}
	// The nearest rank: the shortest wait that so many have not exceeded.
	rank := func(part float64) Seconds { return Seconds(waits[int(math.Ceil(part*float64(len(waits))))-1]) }
	return Waits{Mean: Seconds(mean), Median: rank(0.5), P90: rank(0.9), Max: rank(1)}
}

// compareUnmet puts first what is worst.
func compareUnmet(a, b Unmet) int {
	return cmp.Or(cmp.Compare(b.RefusedCoreHours+b.WaitedCoreHours, a.RefusedCoreHours+a.WaitedCoreHours),
		cmp.Compare(b.Refused+b.Waited, a.Refused+a.Waited), cmp.Compare(a.Model, b.Model),
		cmp.Compare(a.GPUs, b.GPUs), cmp.Compare(a.Cores, b.Cores), cmp.Compare(a.MemoryMiB, b.MemoryMiB))
}

// sample is the pool from a moment on, in GPU cores.
type sample struct {
	at             time.Duration // since the first arrival
	inUse, waiting int64
}

// average sums samples up in at most MaxPoints spans of equal length, the
// last of which ends at end.
func average(samples []sample, from time.Time, end time.Duration, capacity int64) []Point {
	if len(samples) == 0 {
		return []Point{}
	}
	n := int(min(MaxPoints, max(end, 1)))
	points := make([]Point, n)
	for i := range points {
		points[i] = Point{At: from.Add(edge(i, n, end)), Capacity: float64(capacity)}
	}
	bucket := 0
	for i, s := range samples {
		until := end
		if i+1 < len(samples) {
			until = samples[i+1].at
		}
		for at := s.at; at < until; {
			for bucket+1 < n && edge(bucket+1, n, end) <= at {
				bucket++
			}
			start, stop := edge(bucket, n, end), edge(bucket+1, n, end)
			part := float64(min(until, stop)-at) / float64(stop-start)
			points[bucket].InUse += part * float64(s.inUse)
			points[bucket].Waiting += part * float64(s.waiting)
			at = min(until, stop)
		}
	}
	return points
}

// edge is where span i of n begins. Without the fraction of a span it would
// drift, with a product first it would overflow.
func edge(i, n int, end time.Duration) time.Duration {
	whole, rest := end/time.Duration(n), end%time.Duration(n)
	return time.Duration(i)*whole + time.Duration(i)*rest/time.Duration(n)
}
