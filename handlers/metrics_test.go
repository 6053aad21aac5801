package handlers

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/providers"
)

const metricsToken = "a token of Prometheus"

// scraper is a request of Prometheus.
func scraper(t testing.TB, url string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), "GET", url, nil)
	r.Header.Set("Authorization", "Bearer "+metricsToken)
	return r
}

// Metrics name machines, GPUs and projects: nobody reads them without the token, nor where
// there is none, which is said.
func TestMetricsNeedTheirToken(t *testing.T) {
	w, without := newWorld(t), newWorldWith(t, func(c *Config) { c.MetricsToken = "" })
	for _, c := range []struct {
		configured, authorization string
		want                      int
	}{
		{metricsToken, "Bearer " + metricsToken, 200}, {metricsToken, "", 401}, {metricsToken, "Bearer x", 401},
		{metricsToken, "Bearer " + w.member, 401}, {"", "", 404}, {"", "Bearer " + metricsToken, 404}, {"", "Bearer", 404},
	} {
		if c.configured == "" {
			w = without
		}
		r := scraper(t, "/metrics")
		r.Header.Set("Authorization", c.authorization)
		rec := httptest.NewRecorder()
		w.app.ServeHTTP(rec, r)
		if measured := strings.Contains(rec.Body.String(), "weir_pool_gpus "); rec.Code != c.want || measured != (c.want == 200) {
			t.Errorf("with %q and %q: %d", c.configured, c.authorization, rec.Code)
		}
		if named := strings.Contains(rec.Body.String(), "metrics-token-file"); named != (c.want != 200) {
			t.Errorf("with %q and %q, the setting is named: %t", c.configured, c.authorization, named)
		}
	}
}

// scrape reads /metrics as Prometheus does.
func (w *world) scrape() (lines []string) {
	w.Helper()
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, scraper(w, "/metrics"))
	if rec.Code != 200 {
		w.Fatalf("/metrics: %d %s", rec.Code, rec.Body)
	}
	return strings.Split(rec.Body.String(), "\n")
}

// measures wants lines of /metrics; those that begin with ! must not be the
// beginning of one.
func (w *world) measures(wanted ...string) {
	w.Helper()
	lines := w.scrape()
	for _, line := range wanted {
		if start, not := strings.CutPrefix(line, "!"); not {
			if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, start) }) {
				w.Errorf("there is %s", start)
			}
		} else if !slices.Contains(lines, line) {
			name, _, _ := strings.Cut(line, "{")
			w.Errorf("there is no %s but\n%s", line, strings.Join(slices.DeleteFunc(slices.Clone(lines),
				func(l string) bool { return !strings.HasPrefix(l, strings.Fields(name)[0]) }), "\n"))
		}
	}
}

// Many metrics are compressed for a scraper that wants it: once.
func TestMetricsAreCompressedOnce(t *testing.T) {
	many := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "weir_many", Help: "Many."}, []string{"digest"})
	for range 1000 {
		many.WithLabelValues(policies.HashSecret(policies.NewSecret())).Set(1)
	}
	w := newWorldWith(t, func(c *Config) { c.Collectors = []prometheus.Collector{many} })
	server := httptest.NewServer(w.app)
	defer server.Close()
	r := scraper(t, server.URL+"/metrics")
	r.RequestURI = ""
	response, err := http.DefaultClient.Do(r) // it asks for gzip, and undoes it once
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if n := strings.Count(string(body), "weir_many{"); err != nil || n != 1000 || !response.Uncompressed {
		t.Errorf("%d of 1000 metrics, compressed %t, %v", n, response.Uncompressed, err)
	}
}

// Of a project with workspaces, the part of its quota in use; of storage, and of what has
// no bound, none.
func TestQuotaMetrics(t *testing.T) {
	w := newWorld(t)
	w.measures("!weir_project_quota_used_ratio")
	w.send(w.member, "POST", "/workspaces", fmt.Sprintf(`{"project_id":%d,"request":{"gpus":1,"cores":30,"cpu_milli":500}}`, w.project))
	var p models.Project
	storetest.InTx(t, w.store, func(q *store.Queries) (err error) {
		if p, err = q.Project(store.AllProjects, w.project); err == nil {
			p.Quota.CPUMilli = models.Unlimited
			err = q.UpdateProject(&p)
		}
		return err
	})
	w.measures(fmt.Sprintf(`weir_project_quota_used_ratio{project="%d",resource="gpu_cores"} %v`, w.project, 30/float64(p.Quota.GPUCores)),
		fmt.Sprintf(`!weir_project_quota_used_ratio{project="%d",resource="cpu_milli"}`, w.project),
		fmt.Sprintf(`!weir_project_quota_used_ratio{project="%d",resource="storage_mib"}`, w.project))
}

// Each event that is notified of counts once, whoever is notified; of other types there are
// zeros from the start, so that the first one is an increase.
func TestNotificationMetrics(t *testing.T) {
	w := newWorld(t)
	w.measures(`weir_notifications_total{type="request.asked"} 0`, `weir_notifications_total{type="workspace.failed"} 0`)
	w.create(w.member, "/requests", `{"reason":"more","quota":{"project_id":1,"quota":{"gpu_cores":300}}}`)
	w.want(200, w.admin, "POST", "/requests/1/decision", `{"decision":"refuse","reason":"not now"}`)
	w.measures(`weir_notifications_total{type="request.asked"} 1`, `weir_notifications_total{type="request.refused"} 1`,
		`weir_notifications_total{type="workspace.failed"} 0`)
}

func TestPoolMetrics(t *testing.T) {
	w := newWorld(t)
	w.measures("weir_pool_gpus 2", `weir_pool_gpu_cores{use="free"} 200`, `weir_pool_gpu_cores{use="in_use"} 0`, "weir_pool_largest_free_gpu_cores 100",
		`weir_pool_providers{state="online"} 1`, `weir_pool_providers{state="lost"} 0`, `weir_pool_devices{model="NVIDIA H200",sharing="time-slicing"} 2`,
		"weir_pool_waiting_requests 0", `weir_pool_decisions_total{outcome="granted"} 0`, "weir_pool_troubled_devices 0", "!weir_gpu_utilisation_ratio", "!weir_pool_unmet_requests")

	ask := func(cores int, model string) answer {
		return w.send(w.member, "POST", "/workspaces", fmt.Sprintf(
			`{"project_id":%d,"name":"%[2]d of %[3]s","when_insufficient":"wait","request":{"gpus":1,"cores":%[2]d,"gpu_memory_mib":1024,"gpu_model":%[3]q}}`, w.project, cores, model))
	}
	if a := ask(40, "NVIDIA H200"); a.status != 201 {
		t.Fatal(a.raw)
	}
	storetest.InTx(t, w.store, func(q *store.Queries) error { // it lends nothing new
		p, err := q.Provider(1)
		if err != nil {
			return err
		}
		p.State = models.ProviderDraining
		return q.UpdateProvider(&p)
	})
	for model, status := range map[string]int{"NVIDIA H200": 201, "": 201, "made up": 409} {
		if a := ask(20, model); a.status != status {
			t.Errorf("20 cores of %q: %d %s", model, a.status, a.raw)
		}
	}
	w.measures(`weir_pool_gpu_cores{use="in_use"} 40`, `weir_pool_gpu_cores{use="free"} 0`, `weir_pool_providers{state="draining"} 1`,
		`weir_pool_decisions_total{outcome="granted"} 1`, `weir_pool_decisions_total{outcome="delayed"} 2`, `weir_pool_decisions_total{outcome="refused"} 1`,
		"weir_pool_waiting_requests 2", "weir_pool_waiting_gpu_cores 40",
		`weir_pool_unmet_requests{cause="waiting",model="NVIDIA H200"} 1`, `weir_pool_unmet_requests{cause="waiting",model="any"} 1`,
		`weir_pool_unmet_requests{cause="refused",model="other"} 1`, `weir_pool_unmet_gpu_cores{cause="refused",model="other"} 20`)
}

func TestGPUMetrics(t *testing.T) {
	w := newWorld(t)
	r := w.enrolled("desk", 2)
	r.beat(providers.Sample{UUID: "GPU-desk-1", Utilisation: 80, MemoryUsedMiB: 1024, Temperature: 60, PowerMW: 300_500})
	labels := `{device="GPU-desk-1",model="NVIDIA H100",provider="desk",simulated="true"} `
	w.measures("weir_gpu_utilisation_ratio"+labels+"0.8", "weir_gpu_memory_used_bytes"+labels+"1.073741824e+09", "weir_gpu_memory_bytes"+labels+"8.589934592e+10",
		"weir_gpu_temperature_celsius"+labels+"60", "weir_gpu_power_watts"+labels+"300.5", `!weir_gpu_utilisation_ratio{device="GPU-desk-0"`)
	heard := time.Now().Add(time.Hour).Truncate(time.Second)
	storetest.InTx(t, w.store, func(q *store.Queries) error { return q.TouchProvider(r.id, heard) }) // as a heartbeat without news
	w.measures(fmt.Sprintf(`weir_provider_last_seen_timestamp_seconds{provider="desk"} %g`, float64(heard.Unix())))
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		p, err := q.Provider(r.id)
		if err != nil {
			return err
		}
		p.State = models.ProviderLost
		return q.UpdateProvider(&p)
	})
	w.measures(`weir_pool_providers{state="lost"} 1`, "!weir_gpu_") // what is silent is not shown as if it were measured
}

// oldNames break Prometheus's advice and are kept for who reads them.
var oldNames = []string{"weir_pool_gpu_memory_mebibytes"}

func TestMetricsAreNamedAsAdvised(t *testing.T) {
	w := newWorld(t)
	w.enrolled("desk", 1).beat(providers.Sample{UUID: "GPU-desk-0", Utilisation: 1})
	problems, err := promlint.New(strings.NewReader(strings.Join(w.scrape(), "\n"))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "weir_") && !slices.Contains(oldNames, p.Metric) {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func TestMetricsWithoutADatabase(t *testing.T) {
	w := newWorld(t)
	if err := w.store.Close(); err != nil {
		t.Fatal(err)
	}
	rec := httptest.NewRecorder()
	w.app.ServeHTTP(rec, scraper(t, "/metrics"))
	if rec.Code != 500 {
		t.Errorf("/metrics: %d %s", rec.Code, rec.Body)
	}
}

// A scrape of a pool of 50 machines with eight GPUs each, all measured.
func BenchmarkScrape(b *testing.B) {
	w := newWorld(b)
	for i := range 50 {
		r := w.enrolled(fmt.Sprintf("rig-%02d", i), 8)
		samples := make([]providers.Sample, len(r.devices))
		for j, d := range r.devices {
			samples[j] = providers.Sample{UUID: d.UUID, Utilisation: 50, MemoryUsedMiB: 1024, Temperature: 60, PowerMW: 300_000}
		}
		r.beat(samples...)
	}
	lines := 0
	for b.Loop() {
		lines = len(w.scrape())
	}
	b.ReportMetric(float64(lines), "lines")
}
