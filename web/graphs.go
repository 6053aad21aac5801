package web

import (
	"context"
	"fmt"
	"slices"

	"weir/models"
)

// GraphsView is a graph in YAML and, once it was planned, its plan.
type GraphsView struct {
	Form Form // graph, run_id, cpus, utilization, second_threshold, first_threshold, reduced_cpus, serial_cpus
	Plan models.GraphPlan
	Done bool
}

// GraphsExample is a graph that forks, forks again and joins.
const GraphsExample = `name: training
branches:
  - name: load
    operators:
      - {name: read, command: python read.py, seconds: 12}
    branches:
      - name: text
        operators:
          - {name: tokenize, command: python tokenize.py, seconds: 50}
      - name: images
        operators:
          - {name: decode, command: python decode.py, seconds: 45, retries: 1}
          - {name: resize, command: python resize.py, seconds: 75}
      - name: labels
        operators:
          - {name: clean, command: python clean.py, seconds: 10}
  - name: train
    after: [load]
    operators:
      - {name: fit, command: python fit.py, seconds: 90}
`

// GraphDefaults are the values of the form before anything was entered.
func GraphDefaults() map[string]string {
	return map[string]string{"cpus": "8", "utilization": "20", "second_threshold": "50", "first_threshold": "70"}
}

var graphModes = map[models.GraphMode]models.Text{
	models.GraphParallel: models.Say("Branches run in parallel."),
	models.GraphReduced:  models.Say("Branches run in parallel on fewer CPUs."),
	models.GraphSerial:   models.Say("Operators run one after another."),
}

// The timeline of a plan: pixels, and how many CPUs are drawn.
const (
	timelineLeft, timelineWidth, timelineRow = 64, 640, 24
	timelineMost                             = 64
	timelineBars                             = 4000 // at most
)

// graphRowsMost is the most branches that a page lists.
const graphRowsMost = 500

// planRow is a branch of a plan.
type planRow struct {
	models.GraphShare
	Stage int
	From  float64
}

// graphRows are the first branches of a plan, and how many there are.
func graphRows(p models.GraphPlan) (rows []planRow, all int) {
	for i, s := range p.Stages {
		for _, share := range s.Shares {
			if len(rows) < graphRowsMost {
				rows = append(rows, planRow{share, i + 1, s.From})
			}
		}
		all += len(s.Shares)
	}
	return rows, all
}

// timelineBar is a branch on a CPU.
type timelineBar struct {
	Branch, Title string
	X, Y, Width   int
	Color         string // p1 to p6
	Named         bool   // its name fits
}

// timelineOf are the CPUs that a plan uses, in order, and its bars; none if there are more
// than are drawn.
func timelineOf(ctx context.Context, p models.GraphPlan) (cpus []int, bars []timelineBar) {
	used, named := map[int]bool{}, 0
	for _, s := range p.Stages {
		for _, share := range s.Shares {
			named += len(share.CPUs)
			for _, id := range share.CPUs {
				if !used[id] {
					used[id], cpus = true, append(cpus, id)
				}
			}
		}
	}
	if len(cpus) > timelineMost || named > timelineBars || p.Makespan <= 0 {
		return nil, nil
	}
	slices.Sort(cpus)
	x := func(seconds float64) int { return timelineLeft + int(seconds/p.Makespan*timelineWidth) }
	branch := 0
	for _, s := range p.Stages {
		for _, share := range s.Shares {
			for _, id := range share.CPUs {
				row, _ := slices.BinarySearch(cpus, id)
				b := timelineBar{Branch: share.Branch, Title: share.Branch + ": " + graphSpan(ctx, p, s.From, share.Until), X: x(s.From),
					Y: row * timelineRow, Width: max(1, x(share.Until)-x(s.From)), Color: fmt.Sprint("p", branch%6+1)}
				b.Named = len([]rune(share.Branch))*8+8 <= b.Width
				bars = append(bars, b)
			}
			branch++
		}
	}
	return cpus, bars
}

// utilizationX is where a number of percent is on the bar of the utilization.
func utilizationX(percent float64) int { return int(percent / 100 * timelineWidth) }

// graphTime is a time of a plan, or a ratio of times.
func graphTime(ctx context.Context, p models.GraphPlan, seconds float64) string {
	if p.Relative {
		return fmt.Sprintf("%.3g", seconds)
	}
	return T(ctx, "%.1f s", seconds)
}

func graphSpan(ctx context.Context, p models.GraphPlan, from, until float64) string {
	return graphTime(ctx, p, from) + " – " + graphTime(ctx, p, until)
}

// graphNotes are what there is to say about a share.
func graphNotes(ctx context.Context, share models.GraphShare) (notes []string) {
	if len(share.After) > 0 {
		notes = append(notes, T(ctx, "After %s.", firstNames(ctx, share.After)))
	}
	if share.Assumed {
		notes = append(notes, T(ctx, "The time of an operator is not known; the mean of the others is assumed."))
	}
	return notes
}
