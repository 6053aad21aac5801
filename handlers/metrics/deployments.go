package metrics

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir/models"
	"weir/workspaces"
)

// maxDeployments bounds the series of deployments: those with most requests.
const maxDeployments = 100

// deploymentMetrics are the metrics of the requests to deployments that have not ended. They are counted in the
// database, so that all servers export the same and they survive a restart. The label is the ID of the first
// deployment of a model, because names are not for everyone who can read /metrics.
type deploymentMetrics struct{ Sources }

var (
	inferenceRequestsDesc = prometheus.NewDesc("weir_deployment_requests_total", "Requests to a deployment, by how they ended.",
		[]string{"deployment", "outcome"}, nil)
	inferenceDurationDesc = prometheus.NewDesc("weir_deployment_request_duration_seconds",
		"Time from the arrival of a request to a deployment to its end, of those that succeeded.", []string{"deployment"}, nil)
	firstTokenDesc = prometheus.NewDesc("weir_deployment_first_token_seconds",
		"Time from the arrival of a completion to its first token.", []string{"deployment"}, nil)
	inputTokensDesc = prometheus.NewDesc("weir_deployment_input_tokens_total", "Tokens of prompts and texts of requests to a deployment.",
		[]string{"deployment"}, nil)
	outputsDesc = prometheus.NewDesc("weir_deployment_outputs_total", "Tokens that a deployment has generated, texts or images.",
		[]string{"deployment"}, nil)
	partsActiveDesc = prometheus.NewDesc("weir_deployment_parts_active_seconds_total", "Time in which the parts of a deployment have had requests, added up.",
		[]string{"deployment"}, nil)
	partsBusyDesc = prometheus.NewDesc("weir_deployment_parts_busy_seconds_total", "Time in which the parts of a deployment have computed, added up.",
		[]string{"deployment"}, nil)
)

// Describe lists the metrics.
func (g deploymentMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{inferenceRequestsDesc, inferenceDurationDesc, firstTokenDesc, inputTokensDesc, outputsDesc,
		partsActiveDesc, partsBusyDesc} {
		ch <- d
	}
}

// Collect reads what was counted once.
func (g deploymentMetrics) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	list, err := g.Workspaces.LiveDeploymentMetrics(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(inferenceRequestsDesc, err)
		return
	}
	slices.SortFunc(list, func(a, b workspaces.TotalMetrics) int {
		return cmp.Or(cmp.Compare(b.Requests(), a.Requests()), cmp.Compare(a.FirstID, b.FirstID))
	})
	out := samples(ch)
	for _, m := range list[:min(len(list), maxDeployments)] {
		id := strconv.FormatInt(m.FirstID, 10)
		for outcome, n := range map[string]int64{"succeeded": m.Succeeded, "failed": m.Failed, "rejected": m.Rejected} {
			out.put(inferenceRequestsDesc, prometheus.CounterValue, float64(n), []string{id, outcome})
		}
		out.put(inputTokensDesc, prometheus.CounterValue, float64(m.InputTokens), []string{id})
		out.put(outputsDesc, prometheus.CounterValue, float64(m.Outputs), []string{id})
		out.put(partsActiveDesc, prometheus.CounterValue, float64(m.Parts.Active)/1000, []string{id})
		out.put(partsBusyDesc, prometheus.CounterValue, float64(m.Parts.Busy)/1000, []string{id})
		ch <- histogram(inferenceDurationDesc, m.Duration, id)
		ch <- histogram(firstTokenDesc, m.FirstToken, id)
	}
}

// histogram has every third or fourth bucket: those whose bounds begin with 1, 2.5 and 5, from 5 ms to 1000 s.
func histogram(d *prometheus.Desc, h models.Durations, id string) prometheus.Metric {
	buckets, n := map[float64]uint64{}, uint64(0)
	for i, count := range h.Buckets {
		n += uint64(count)
		bound := models.DurationBound(int64(i))
		if first := i % 10; (first == 0 || first == 4 || first == 7) && bound >= 5*time.Millisecond && bound <= 1000*time.Second {
			buckets[bound.Seconds()] = n
		}
	}
	return prometheus.MustNewConstHistogram(d, n, float64(h.Millis)/1000, buckets, id)
}
