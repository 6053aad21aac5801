package web

import (
	"context"
	"time"
)

// PlanningView compares how the pool's past went with how it would have gone
// with more machines.
type PlanningView struct {
	Form            Form // add, days, policy
	Policies        []Option
	Done            bool // there is a comparison
	Added           string
	Days            int64
	Requests        int
	Assumed         int           // requests that never ran
	AssumedDuration time.Duration // how long those are taken to last
	Now, Then       Replay
}

// Replay is how the requests of the past go on some machines.
type Replay struct {
	Machines, GPUs          int
	Placed, Waited, Refused int
	Median, P90, Max        time.Duration // waits
	GPUHours                int64         // served
	InUse                   int64         // percent of the capacity, on average
	From, To                time.Time
	Points                  []ReplayPoint
}

// ReplayPoint is a pool's mean state over a span, in GPU cores.
type ReplayPoint struct {
	At                       time.Time
	Capacity, InUse, Waiting int64
}

// comparison is one line of the comparison.
type comparison struct{ What, Now, Then string }

func (v PlanningView) comparisons(ctx context.Context) []comparison {
	wait := func(d time.Duration) string { return span(ctx, time.Time{}, time.Time{}.Add(d)) }
	count := func(n int) string { return grouped(int64(n)) }
	a, b := v.Now, v.Then
	return []comparison{
		{T(ctx, "Machines"), count(a.Machines), count(b.Machines)},
		{T(ctx, "GPUs"), count(a.GPUs), count(b.GPUs)},
		{T(ctx, "Requests met"), count(a.Placed), count(b.Placed)},
		{T(ctx, "Of those, after waiting"), count(a.Waited), count(b.Waited)},
		{T(ctx, "Requests refused"), count(a.Refused), count(b.Refused)},
		{T(ctx, "Median wait"), wait(a.Median), wait(b.Median)},
		{T(ctx, "90th percentile wait"), wait(a.P90), wait(b.P90)},
		{T(ctx, "Longest wait"), wait(a.Max), wait(b.Max)},
		{T(ctx, "GPU hours used"), grouped(a.GPUHours), grouped(b.GPUHours)},
		{T(ctx, "Average in use"), number(a.InUse) + "%", number(b.InUse) + "%"},
	}
}

func (v PlanningView) charts(ctx context.Context) []Chart {
	return []Chart{v.Now.chart(ctx, "chart-now", T(ctx, "Current"), v.top()),
		v.Then.chart(ctx, "chart-then", T(ctx, "With %s", v.Added), v.top())}
}

// top is the same for both pictures, so that they can be compared.
func (v PlanningView) top() (n int64) {
	for _, r := range []Replay{v.Now, v.Then} {
		for _, p := range r.Points {
			n = max(n, p.Capacity, p.InUse, p.Waiting)
		}
	}
	return roundUp(n, 100)
}

func (r Replay) chart(ctx context.Context, name, title string, top int64) Chart {
	capacity := Line{Class: "capacity", Label: T(ctx, "Capacity")}
	inUse := Line{Class: "mean", Label: T(ctx, "In use")}
	waiting := Line{Class: "waiting", Label: T(ctx, "Queued")}
	for _, p := range r.Points {
		capacity.Values = append(capacity.Values, p.Capacity)
		inUse.Values = append(inUse.Values, p.InUse)
		waiting.Values = append(waiting.Values, p.Waiting)
	}
	return Chart{ID: name, Title: title, Top: top, Say: grouped, From: r.From, To: r.To, Lines: []Line{capacity, inUse, waiting},
		Summary: T(ctx, "%s: GPU cores of capacity, in use and queued. On average, %d%% are in use.", title, r.InUse)}
}

// pairs are the points of both replays side by side; the shorter one ends
// before.
func (v PlanningView) pairs() (rows [][2]*ReplayPoint) {
	for i := range max(len(v.Now.Points), len(v.Then.Points)) {
		var row [2]*ReplayPoint
		for j, points := range [][]ReplayPoint{v.Now.Points, v.Then.Points} {
			if i < len(points) {
				row[j] = &points[i]
			}
		}
		rows = append(rows, row)
	}
	return rows
}
