package handlers

import (
	"fmt"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// The metrics of a deployment are the same over REST, on its page and for Prometheus.
func TestDeploymentMetrics(t *testing.T) {
	w := newWorld(t)
	deployment := w.addDeployment(w.project, "ann@example.org", models.TaskTextGeneration)
	at, count := "/deployments/"+id(deployment), func(step int64, at time.Time, measure models.DeploymentMeasure, d time.Duration, n int64) models.DeploymentCount {
		return models.DeploymentCount{DeploymentID: deployment, Step: step, At: at, Measure: measure, Bucket: models.DurationBucket(d), Count: n,
			Millis: n * d.Milliseconds()}
	}
	none := w.get(w.member, at+"/metrics")
	hasTexts(t, none.raw, `"span":"hour"`, `"succeeded":0`)
	hasTexts(t, w.page(w.member, at), "No inference requests in this time range.")
	w.measures("!weir_deployment_requests_total")
	var list []models.DeploymentCount
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		minute := q.Now().UTC().Truncate(time.Minute)
		for step, begin := range map[int64]time.Time{60: minute, 900: minute.Truncate(15 * time.Minute), 3600: minute.Truncate(time.Hour), 0: time.Unix(0, 0).UTC()} {
			list = append(list, count(step, begin, models.MeasureDuration, time.Second, 9), count(step, begin, models.MeasureDuration, 10*time.Second, 1),
				count(step, begin, models.MeasureFirstToken, 100*time.Millisecond, 10), count(step, begin, models.MeasureFailed, 0, 2),
				count(step, begin, models.MeasureRejected, 0, 3), count(step, begin, models.MeasureInputTokens, 0, 70), count(step, begin, models.MeasureOutputs, 0, 1200))
		}
		return q.AddDeploymentCounts(list)
	})
	for _, span := range []string{"hour", "day", "week", "month", "months"} {
		m := w.get(w.member, at+"/metrics?span="+span)
		hasTexts(t, m.raw, `"succeeded":10,"failed":2,"rejected":3,"input_tokens":70,"outputs":1200,"duration":{"mean_seconds":1.9,"p50_seconds":0.9`)
		hasTexts(t, w.page(w.member, at+"?span="+span), ">15<", ">1200<", "Output tokens per second")
	}
	if a := w.send(w.member, "GET", at+"/metrics?span=year", ""); a.status != 422 {
		t.Errorf("an unknown span: %d %s", a.status, a.raw)
	}
	hasTexts(t, w.page(w.member, at+"?span=year"), ">15<")
	label := fmt.Sprintf(`{deployment="%d"`, deployment)
	w.measures("weir_deployment_requests_total"+label+`,outcome="failed"} 2`, "weir_deployment_requests_total"+label+`,outcome="succeeded"} 10`,
		"weir_deployment_request_duration_seconds_bucket"+label+`,le="0.5"} 0`, "weir_deployment_request_duration_seconds_bucket"+label+`,le="1"} 9`,
		"weir_deployment_request_duration_seconds_bucket"+label+`,le="10"} 10`, "weir_deployment_request_duration_seconds_sum"+label+"} 19",
		"weir_deployment_first_token_seconds_count"+label+"} 10", "weir_deployment_outputs_total"+label+"} 1200")
	if a := w.send(w.member, "POST", at+"/stop", ""); a.status != 202 {
		t.Fatalf("%d %s", a.status, a.raw)
	}
	w.measures("weir_deployment_outputs_total" + label + "} 1200") // until it has ended
}
