package web

import (
	"context"
	"math"
	"slices"
	"time"

	"weir/models"
)

// progressWidth is that of the bars of a branch in pixels.
const progressWidth = 240

// progressRow is a branch of a graph that runs, in words.
type progressRow struct {
	State, Tag               string
	Ended                    int // operators
	Planned, Actual, Seconds string
	Bars                     []timelineBar // planned, and below it actual
}

func progressTitle(ctx context.Context, p models.GraphProgress) string {
	if p.Name == "" {
		return T(ctx, "Task graph")
	}
	return T(ctx, "Task graph of %s", p.Name)
}

// hasTimes reports whether a graph can be planned with what was measured: an operator has succeeded.
func hasTimes(p models.GraphProgress) bool {
	return slices.ContainsFunc(p.Branches, func(b models.BranchProgress) bool {
		return slices.ContainsFunc(b.Operators, func(o models.OperatorProgress) bool { return o.Code != nil && *o.Code == 0 })
	})
}

// endedBranches is how many branches have ended well.
func endedBranches(p models.GraphProgress) (n int) {
	for _, b := range p.Branches {
		if b.EndedAt != nil && !b.Failed {
			n++
		}
	}
	return n
}

// sinceStart is a moment in seconds after the start of the graph.
func sinceStart(p models.GraphProgress, at time.Time) float64 {
	return max(at.Sub(p.StartedAt).Seconds(), 0)
}

// lastMoment is the end of everything that was planned and done, in seconds after the start.
func lastMoment(p models.GraphProgress) (last float64) {
	for _, b := range p.Branches {
		if !p.Relative {
			last = max(last, b.PlannedUntil)
		}
		for _, at := range []*time.Time{b.StartedAt, b.EndedAt} {
			if at != nil {
				last = max(last, sinceStart(p, *at))
			}
		}
	}
	return last
}

// progressOf is a branch in words, with bars up to the last moment.
func progressOf(ctx context.Context, p models.GraphProgress, b models.BranchProgress, last float64) (r progressRow) {
	seconds := 0.0
	for _, o := range b.Operators {
		if o.Code != nil && *o.Code == 0 {
			r.Ended++
			seconds += o.Seconds
		}
	}
	if r.Ended > 0 {
		r.Seconds = T(ctx, "%.1f s", seconds)
	}
	if r.Planned = T(ctx, "not known"); !p.Relative {
		r.Planned = T(ctx, "%.1f s", b.PlannedFrom) + " – " + T(ctx, "%.1f s", b.PlannedUntil)
		r.bar(last, 0, b.PlannedFrom, b.PlannedUntil, "p1")
	}
	r.State, r.Tag = branchState(ctx, p, b)
	if b.StartedAt == nil {
		return r
	}
	from := sinceStart(p, *b.StartedAt)
	r.Actual = T(ctx, "%.1f s", from) + " – "
	if b.EndedAt != nil {
		until := sinceStart(p, *b.EndedAt)
		r.Actual += T(ctx, "%.1f s", until)
		r.bar(last, 11, from, until, "p2")
	}
	return r
}

// branchState is what a branch does or, when nothing runs any more, did, and the class of its tag.
func branchState(ctx context.Context, p models.GraphProgress, b models.BranchProgress) (words, class string) {
	over := p.Interrupted || p.EndedAt != nil
	switch {
	case b.Failed:
		return T(ctx, "failed"), "bad"
	case b.EndedAt != nil:
		return T(ctx, "ended"), "ok"
	case b.StartedAt != nil && over:
		return T(ctx, "interrupted"), "bad"
	case b.StartedAt != nil:
		return T(ctx, "running"), "ok"
	case over:
		return T(ctx, "not started"), ""
	}
	return T(ctx, "waiting"), ""
}

// utilizationSteps is how many steps the curve of the utilization has.
const utilizationSteps = 120

// utilizationChart is the utilization of the machine from the start of the graph to its end, or to
// now, with both thresholds. Between measurements it has not changed by a percent.
func utilizationChart(ctx context.Context, p models.GraphProgress) Chart {
	c := Chart{ID: "graph-utilization", Title: T(ctx, "Utilization"), Say: percentWords, Top: 100, From: p.StartedAt, To: From(ctx).Now}
	samples := slices.Clone(p.Samples)
	for _, d := range p.Plans {
		samples = append(samples, models.GraphSample{At: d.At, Utilization: d.Utilization})
	}
	slices.SortStableFunc(samples, func(a, b models.GraphSample) int { return a.At.Compare(b.At) })
	if p.Interrupted {
		c.To = samples[len(samples)-1].At
		for _, b := range p.Branches {
			for _, at := range []*time.Time{b.StartedAt, b.EndedAt} {
				if at != nil && at.After(c.To) {
					c.To = *at
				}
			}
		}
	} else if p.EndedAt != nil {
		c.To = *p.EndedAt
	}
	use, first, second := Line{Class: "mean", Label: T(ctx, "Utilization")}, Line{Class: "capacity", Label: T(ctx, "First threshold")},
		Line{Class: "allocated", Label: T(ctx, "Second threshold")}
	value := int64(-1)
	for i := range utilizationSteps {
		end := c.From.Add(c.To.Sub(c.From) * time.Duration(i+1) / utilizationSteps)
		for len(samples) > 0 && !samples[0].At.After(end) {
			value, samples = int64(math.Round(samples[0].Utilization)), samples[1:]
		}
		use.Values, first.Values, second.Values = append(use.Values, value), append(first.Values, int64(p.FirstThreshold)),
			append(second.Values, int64(p.SecondThreshold))
	}
	c.Lines = []Line{first, second, use}
	c.Summary = T(ctx, "%s: maximum %s.", c.Title, percentWords(largest([]Line{use})))
	return c
}

// bar adds a bar from one moment to another, of those up to the last one.
func (r *progressRow) bar(last float64, y int, from, until float64, color string) {
	if last > 0 {
		x := int(from / last * progressWidth)
		r.Bars = append(r.Bars, timelineBar{X: x, Y: y, Width: max(1, int(until/last*progressWidth)-x), Color: color})
	}
}
