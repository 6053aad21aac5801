package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
)

func (a rest) deploymentMetricsOperations(s section) {
	register(a, s, route{http.MethodGet, "/deployments/{id}/metrics", 200, "get-deployment-metrics",
		models.Say("Get the metrics of the requests to a deployment")}, a.getDeploymentMetrics)
}

// DeploymentMetricsQuery selects the metrics of a time span.
type DeploymentMetricsQuery struct {
	ByID
	Span string `query:"span" enum:"hour,day,week,month,months" default:"hour" doc:"hour: in steps of a minute; day: of 15 minutes; week: of an hour; month: of 6 hours; months, which are 90 days: of a day"`
}

// DeploymentMetrics are the metrics of the requests to a deployment.
type DeploymentMetrics struct {
	Span  string                  `json:"span"`
	From  time.Time               `json:"from"`
	Until time.Time               `json:"until" doc:"end of the last step, which can lie ahead"`
	Total RequestMetrics          `json:"total" doc:"of the whole span"`
	Steps []DeploymentMetricsStep `json:"steps" doc:"steps of equal length, oldest first"`
	Parts []PartMetrics           `json:"parts" doc:"of each part, with what parts of its number had before an update"`
}

// PartMetrics are metrics of a part.
type PartMetrics struct {
	Number int      `json:"number" doc:"from 1"`
	Busy   *float64 `json:"busy_fraction,omitempty" doc:"part of the time with requests in which it has computed"`
}

// DeploymentMetricsStep is one step of a span.
type DeploymentMetricsStep struct {
	From time.Time `json:"from"`
	RequestMetrics
}

// RequestMetrics are metrics of requests.
type RequestMetrics struct {
	Succeeded   int64      `json:"succeeded" doc:"requests that succeeded"`
	Failed      int64      `json:"failed" doc:"requests that failed, also while their response was sent; excludes wrong input, ended rights and clients that have gone"`
	Rejected    int64      `json:"rejected" doc:"requests that were refused because too many others waited"`
	InputTokens int64      `json:"input_tokens" doc:"tokens of prompts and texts; 0 for images"`
	Outputs     int64      `json:"outputs" doc:"tokens that were generated, texts or images"`
	Duration    *Durations `json:"duration,omitempty" doc:"of the requests that succeeded, from their arrival to their end, waiting included; absent if there were none"`
	FirstToken  *Durations `json:"first_token,omitempty" doc:"from the arrival of a completion to its first token; absent if there were none"`
	Busy        *float64   `json:"busy_fraction,omitempty" doc:"part of the time with requests in which the parts have computed, on average; the rest is the bubble: they wait for each other, the server or the client"`
}

// Durations are the distribution of durations.
type Durations struct {
	Mean   float64 `json:"mean_seconds" doc:"mean"`
	Median float64 `json:"p50_seconds" doc:"estimate of the median, as histogram_quantile of Prometheus has it, 28% too much or too little at most from 1 ms to 5000 s"`
	P95    float64 `json:"p95_seconds" doc:"what 95% do not exceed"`
	P99    float64 `json:"p99_seconds" doc:"what 99% do not exceed"`
}

func durationsOf(h models.Durations) *Durations {
	if h.Count() == 0 {
		return nil
	}
	return &Durations{h.Mean().Seconds(), h.Quantile(.5).Seconds(), h.Quantile(.95).Seconds(), h.Quantile(.99).Seconds()}
}

func requestMetricsOf(m models.RequestMetrics) RequestMetrics {
	return RequestMetrics{m.Succeeded, m.Failed, m.Rejected, m.InputTokens, m.Outputs, durationsOf(m.Duration), durationsOf(m.FirstToken),
		busyFraction(m.Parts)}
}

func busyFraction(t models.PartTime) *float64 {
	if !t.Known() {
		return nil
	}
	return new(t.Fraction())
}

func (a rest) getDeploymentMetrics(ctx context.Context, in *DeploymentMetricsQuery) (*Response[DeploymentMetrics], error) {
	m, err := a.Workspaces.DeploymentMetrics(ctx, actorOf(ctx), in.ID, in.Span)
	if err != nil {
		return nil, err
	}
	v := DeploymentMetrics{Span: m.Span, From: m.From, Until: m.Until, Total: requestMetricsOf(m.Total), Parts: []PartMetrics{}}
	for i, part := range m.Parts {
		v.Parts = append(v.Parts, PartMetrics{i + 1, busyFraction(part)})
	}
	for i, step := range m.Steps {
		v.Steps = append(v.Steps, DeploymentMetricsStep{m.From.Add(time.Duration(i) * m.Step()), requestMetricsOf(step)})
	}
	return &Response[DeploymentMetrics]{v}, nil
}
