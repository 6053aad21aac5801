package web

import (
	"context"
	"strconv"
	"time"

	"weir/models"
)

// requestStep are the requests of one step of the metrics of a deployment.
type requestStep struct {
	At time.Time
	models.RequestMetrics
}

// requestSteps are the steps with requests, newest first.
func requestSteps(m models.DeploymentMetrics) (list []requestStep) {
	for i := len(m.Steps) - 1; i >= 0; i-- {
		if m.Steps[i].Requests() > 0 {
			list = append(list, requestStep{m.From.Add(time.Duration(i) * m.Step()), m.Steps[i]})
		}
	}
	return list
}

// latency formats a duration of requests; a dash if there are none.
func latency(ctx context.Context, h models.Durations, part float64) string {
	if h.Count() == 0 {
		return "–"
	}
	return passTime(ctx, h.Quantile(part).Seconds())
}

// requestCharts show the requests to a deployment in each step.
func requestCharts(ctx context.Context, m models.DeploymentMetrics) []Chart {
	count := func(of func(models.RequestMetrics) int64) (values []int64) {
		for _, s := range m.Steps {
			values = append(values, of(s))
		}
		return values
	}
	list := []Chart{requestChart(ctx, m, "requests", T(ctx, "Inference requests"), number, []Line{
		{"mean", T(ctx, "succeeded"), count(func(s models.RequestMetrics) int64 { return s.Succeeded })},
		{"waiting", T(ctx, "failed or rejected"), count(func(s models.RequestMetrics) int64 { return s.Failed + s.Rejected })}})}
	quantiles := func(name, title string, of func(models.RequestMetrics) models.Durations) {
		values := func(part float64) []int64 {
			return count(func(s models.RequestMetrics) int64 {
				if h := of(s); h.Count() > 0 {
					return h.Quantile(part).Milliseconds()
				}
				return -1
			})
		}
		list = append(list, requestChart(ctx, m, name, title, func(ms int64) string { return passTime(ctx, float64(ms)/1000) },
			[]Line{{"most", T(ctx, "95th percentile"), values(.95)}, {"mean", T(ctx, "median"), values(.5)}}))
	}
	quantiles("latency", T(ctx, "Latency"), func(s models.RequestMetrics) models.Durations { return s.Duration })
	if m.Deployment.Task == models.TaskTextGeneration {
		quantiles("first-token", T(ctx, "Time to first token"), func(s models.RequestMetrics) models.Durations { return s.FirstToken })
	}
	if m.Total.Parts.Known() {
		busy := count(func(s models.RequestMetrics) int64 { return busyPercent(s.Parts) })
		c := requestChart(ctx, m, "busy", T(ctx, "Time that the parts compute"), percentWords, []Line{{Class: "mean", Values: busy}})
		c.Top = 100
		list = append(list, c)
	}
	var rates []int64 // in thousandths
	for i, s := range m.Steps {
		begun := m.At.Sub(m.From.Add(time.Duration(i) * m.Step())) // the last step has not ended
		rates = append(rates, s.Outputs*1000/max(int64(min(m.Step(), begun).Seconds()), 1))
	}
	return append(list, requestChart(ctx, m, "throughput", T(ctx, "%s per second", outputsName(ctx, m.Deployment.Task)),
		func(thousandths int64) string { return strconv.FormatFloat(float64(thousandths)/1000, 'g', 3, 64) },
		[]Line{{Class: "mean", Values: rates}}))
}

// busyPercent is how much of the time with requests parts compute, in percent; -1 if that is not known.
func busyPercent(t models.PartTime) int64 {
	if !t.Known() {
		return -1
	}
	return int64(100*t.Fraction() + .5)
}

// plannedMemory is how many bytes a part may use by its plan: on a GPU those of its tensors and its state, on CPUs those of
// its process; 0 while the latter has none.
func (d DeploymentDetail) plannedMemory(i int) int64 {
	switch {
	case d.Parts[i].DeviceType == "cuda":
		return d.Plan.Parts[i].Total
	case d.Demand.GPUs == 0:
		return 0
	}
	return d.Demand.MemoryMiB / d.Demand.GPUs << 20
}

// busy is how much of the time with requests a part has computed.
func (d DeploymentDetail) busy(part int64) string {
	if part >= int64(len(d.Metrics.Parts)) {
		return "–"
	}
	return percentWords(busyPercent(d.Metrics.Parts[part]))
}

// outputsName names what requests return.
func outputsName(ctx context.Context, task models.ModelTask) string {
	switch task {
	case models.TaskImageClassification:
		return T(ctx, "Images")
	case models.TaskTextEmbedding:
		return T(ctx, "Texts")
	default:
		return T(ctx, "Output tokens")
	}
}

func requestChart(ctx context.Context, m models.DeploymentMetrics, name, title string, say func(int64) string, lines []Line) Chart {
	most := largest(lines)
	c := Chart{ID: "chart-" + name, Title: title, Say: say, Lines: lines, From: m.From, To: m.Until, Top: roundUp(most, 2),
		Summary: T(ctx, "%s: no data.", title)}
	if most >= 0 {
		c.Summary = T(ctx, "%s: maximum %s.", title, say(most))
	}
	return c
}
