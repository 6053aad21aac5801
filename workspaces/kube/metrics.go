package kube

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics are the metrics of requests to the API server.
type requestMetrics struct {
	*prometheus.HistogramVec
}

func newRequestMetrics() requestMetrics {
	return requestMetrics{prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_cluster_request_duration_seconds", Help: "Time until the cluster's API server answers, by method and status; of watches until they begin.",
		Buckets: []float64{.005, .025, .1, .5, 2.5, 10},
	}, []string{"method", "status"})}
}

// through records the requests through next. Without a response, the status is
// “none”.
func (m requestMetrics) through(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		began := time.Now()
		response, err := next.RoundTrip(req)
		status := "none"
		if err == nil {
			status = strconv.Itoa(response.StatusCode)
		}
		m.WithLabelValues(req.Method, status).Observe(time.Since(began).Seconds())
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
