package metrics

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"weir/models"
)

// Metrics is the registry behind /metrics.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.HistogramVec
	rendered *prometheus.CounterVec
}

// New measures from now on.
func New(from Sources) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), requests: prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "weir_http_request_duration_seconds", Help: "Time to answer a request, by route.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 10},
	}, []string{"method", "route", "status"}), rendered: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "weir_shared_contents_rendered_total", Help: "Contents rendered that requests share, by page.",
	}, []string{"page"})}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		m.requests, m.rendered, gauges{from}, poolGauges{from}, projectGauges{from},
		deploymentMetrics{from})
	m.registry.MustRegister(from.Others...)
	return m
}

var knownMethods = []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}

// Request counts one request, by its route.
func (m *Metrics) Request(method, route string, status int, took time.Duration) {
	if !slices.Contains(knownMethods, method) {
		method = "other" // the client may invent any number of them
	}
	m.requests.WithLabelValues(method, route, strconv.Itoa(status)).Observe(took.Seconds())
}

// Rendered counts one rendering of a content that requests share.
func (m *Metrics) Rendered(page string) { m.rendered.WithLabelValues(page).Inc() }

// maxScrapes limits concurrent scrapes. Each reads the pool, without authentication.
const maxScrapes = 4

// Handler answers /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes,
		DisableCompression: true}) // the middleware compresses
}

// gauges are read from the database at each scrape.
type gauges struct{ Sources }

var (
	workspacesDesc = prometheus.NewDesc("weir_workspaces", "Workspaces by state.", []string{"state"}, nil)
	streamsDesc    = prometheus.NewDesc("weir_event_streams", "Open event streams.", nil, nil)
	notifiedDesc   = prometheus.NewDesc("weir_notifications_total",
		"Events that were notified of, by the type of the notification: each once, whoever was notified.", []string{"type"}, nil)
	encodedDesc = prometheus.NewDesc("weir_events_encoded_total", "Events encoded for streams: each once, however many it goes to.", nil,
		nil)
)

// Describe lists them.
func (g gauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{workspacesDesc, streamsDesc, encodedDesc, notifiedDesc} {
		ch <- d
	}
}

// Collect reads them once.
func (g gauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	streams, encoded := g.Streams()
	gauge(streamsDesc, float64(streams))
	ch <- prometheus.MustNewConstMetric(encodedDesc, prometheus.CounterValue, float64(encoded))
	notified := g.Store.CountNotified()
	for _, kind := range models.NotificationKinds {
		ch <- prometheus.MustNewConstMetric(notifiedDesc, prometheus.CounterValue, float64(notified[kind]), kind)
	}
	counts, err := g.Workspaces.Count(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(workspacesDesc, err)
		return
	}
	for _, state := range append([]models.WorkspaceState{models.StateStopped, models.StateFailed}, models.ActiveStates...) {
		gauge(workspacesDesc, float64(counts[state]), string(state))
	}
}
