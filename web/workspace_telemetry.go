package web

import (
	"context"
	"slices"
	"time"

	"weir/models"
)

// The charts of a workspace show the last hour.
const (
	workspaceSteps = 120
	workspaceStep  = 30 * time.Second
)

// workspaceUse is what a workspace used on average in one step; negative where nothing was
// measured.
type workspaceUse struct {
	At     time.Time // its beginning
	CPU    int64     // milli
	Memory int64     // MiB
	GPU    int64     // percent
}

// refreshSeconds is how often the page of a running workspace reads its measurements.
const refreshSeconds = 15

func (v WorkspaceView) every() int {
	if v.Workspace.State == models.StateRunning {
		return refreshSeconds
	}
	return 0
}

// steps are those of the last hour, oldest first.
func (v WorkspaceView) steps() []workspaceUse {
	var sums [workspaceSteps]workspaceUse
	var counts, measured [workspaceSteps]int64
	begin := v.Now.Truncate(workspaceStep).Add(-(workspaceSteps - 1) * workspaceStep)
	for _, m := range v.Telemetry {
		i := int(m.At.Sub(begin) / workspaceStep)
		if m.At.Before(begin) || i >= workspaceSteps {
			continue
		}
		counts[i]++
		sums[i].CPU, sums[i].Memory = sums[i].CPU+m.CPUMilli, sums[i].Memory+m.MemoryMiB
		if m.GPUPercent != nil {
			measured[i]++
			sums[i].GPU += *m.GPUPercent
		}
	}
	steps := make([]workspaceUse, workspaceSteps)
	for i, sum := range sums {
		steps[i] = workspaceUse{begin.Add(time.Duration(i) * workspaceStep), mean(sum.CPU, counts[i]), mean(sum.Memory, counts[i]),
			mean(sum.GPU, measured[i])}
	}
	return steps
}

// mean is -1 of no numbers.
func mean(sum, n int64) int64 {
	if n == 0 {
		return -1
	}
	return sum / n
}

// measuredSteps are those in which something was measured, newest first.
func measuredSteps(steps []workspaceUse) []workspaceUse {
	list := slices.DeleteFunc(slices.Clone(steps), func(s workspaceUse) bool { return s.CPU < 0 })
	slices.Reverse(list)
	return list
}

func (v WorkspaceView) measuresGPU() bool {
	return slices.ContainsFunc(v.Telemetry, func(m models.WorkspaceTelemetry) bool { return m.GPUPercent != nil })
}

// charts show the use beside what the workspace may use.
func (v WorkspaceView) charts(ctx context.Context, steps []workspaceUse) []Chart {
	demand := v.Workspace.Demand
	list := []Chart{
		workspaceChart(ctx, steps, "cpu", T(ctx, "CPU"), demand.CPUMilli, 0, cpuWords, func(s workspaceUse) int64 { return s.CPU }),
		workspaceChart(ctx, steps, "memory", T(ctx, "Memory"), demand.MemoryMiB, 0, models.FormatMiB,
			func(s workspaceUse) int64 { return s.Memory }),
	}
	if v.measuresGPU() {
		gpu := workspaceChart(ctx, steps, "gpu", T(ctx, "GPU"), 0, 100, percentWords, func(s workspaceUse) int64 { return s.GPU })
		gpu.Simulated = v.Simulated
		list = append(list, gpu)
	}
	return list
}

func cpuWords(n int64) string { return models.Quantity("cpu_milli", n) }

func percentWords(n int64) string {
	if n < 0 {
		return "–"
	}
	return number(n) + "%"
}

func workspaceChart(ctx context.Context, steps []workspaceUse, name, title string, limit, top int64, say func(int64) string,
	of func(workspaceUse) int64) Chart {
	limits, use := Line{Class: "capacity", Label: T(ctx, "Limit")}, Line{Class: "mean", Label: T(ctx, "In use")}
	for _, s := range steps {
		use.Values, limits.Values = append(use.Values, of(s)), append(limits.Values, limit)
	}
	c := Chart{ID: "chart-" + name, Title: title, Say: say, Lines: []Line{use},
		From: steps[0].At, To: steps[len(steps)-1].At.Add(workspaceStep)}
	if limit > 0 {
		c.Lines = []Line{limits, use}
	}
	c.Top = max(1, top, largest(c.Lines))
	most := largest([]Line{use})
	c.Summary = T(ctx, "%s: no data.", title)
	if most >= 0 {
		c.Summary = T(ctx, "%s: maximum %s.", title, say(most))
	}
	for _, s := range steps[len(steps)-2:] { // the last step may have begun just now
		if now := of(s); now >= 0 {
			c.Title = title + " " + say(now)
		}
	}
	return c
}
