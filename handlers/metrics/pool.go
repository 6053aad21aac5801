package metrics

import (
	"context"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"weir/models"
	"weir/policies"
	"weir/pool"
)

// poolGauges are the pool's metrics, from one read for each scrape. Label values are
// GPUs, machines, models or constants, never user input, so that their number is
// bounded.
type poolGauges struct{ Sources }

// scraper is the actor that reads the pool.
var scraper = policies.System("metrics")

var gpuLabels = []string{"provider", "device", "model", "simulated"}

var (
	gpusDesc   = prometheus.NewDesc("weir_pool_gpus", "GPUs in the pool.", nil, nil)
	coresDesc  = prometheus.NewDesc("weir_pool_gpu_cores", "GPU cores in the pool, by what is done with them.", []string{"use"}, nil)
	memoryDesc = prometheus.NewDesc("weir_pool_gpu_memory_mebibytes", "GPU memory in the pool, by what is done with it.", []string{"use"},
		nil)
	largestDesc = prometheus.NewDesc("weir_pool_largest_free_gpu_cores", "GPU cores that are free on the one device that has most.", nil,
		nil)
	providersDesc = prometheus.NewDesc("weir_pool_providers", "Machines that lend GPUs, by state.", []string{"state"}, nil)
	devicesDesc   = prometheus.NewDesc("weir_pool_devices", "GPUs whose driver reports them, by how they may be shared and model.",
		[]string{"sharing", "model"}, nil)
	troubledDesc = prometheus.NewDesc("weir_pool_troubled_devices",
		"GPUs and MIG instances on which nothing is placed because of their trouble.", nil, nil)
	decisionsDesc = prometheus.NewDesc("weir_pool_decisions_total", "Answers of the pool to requests for GPUs.", []string{"outcome"}, nil)
	seenDesc      = prometheus.NewDesc("weir_provider_last_seen_timestamp_seconds", "When a machine was last heard of.", []string{"provider"},
		nil)

	waitingDesc      = prometheus.NewDesc("weir_pool_waiting_requests", "Workspaces that wait for GPUs.", nil, nil)
	waitingCoresDesc = prometheus.NewDesc("weir_pool_waiting_gpu_cores", "GPU cores that those who wait ask for.", nil, nil)
	unmetDesc        = prometheus.NewDesc("weir_pool_unmet_requests",
		"Requests that wait, or were refused in the last day, by the model they ask for.", []string{"cause", "model"}, nil)
	unmetCoresDesc = prometheus.NewDesc("weir_pool_unmet_gpu_cores",
		"GPU cores of requests that wait, or were refused in the last day, by the model they ask for.", []string{"cause", "model"}, nil)

	utilisationDesc = prometheus.NewDesc("weir_gpu_utilisation_ratio",
		"Part of the time in which a GPU computes, from 0 to 1, as last reported.", gpuLabels, nil)
	gpuUsedDesc     = prometheus.NewDesc("weir_gpu_memory_used_bytes", "Memory of a GPU that is in use, as last reported.", gpuLabels, nil)
	gpuMemoryDesc   = prometheus.NewDesc("weir_gpu_memory_bytes", "Memory of a GPU that reports measurements.", gpuLabels, nil)
	temperatureDesc = prometheus.NewDesc("weir_gpu_temperature_celsius", "Temperature of a GPU, as last reported.", gpuLabels, nil)
	powerDesc       = prometheus.NewDesc("weir_gpu_power_watts", "Power that a GPU draws, as last reported.", gpuLabels, nil)
)

var poolDescs = []*prometheus.Desc{gpusDesc, coresDesc, memoryDesc, largestDesc, providersDesc, devicesDesc, troubledDesc, decisionsDesc,
	seenDesc,
	waitingDesc, waitingCoresDesc, unmetDesc, unmetCoresDesc, utilisationDesc, gpuUsedDesc, gpuMemoryDesc, temperatureDesc, powerDesc}

// Describe lists the metrics.
func (g poolGauges) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range poolDescs {
		ch <- d
	}
}

// samples are where the values of one scrape go.
type samples chan<- prometheus.Metric

func (s samples) gauge(d *prometheus.Desc, v float64, labels ...string) {
	s.put(d, prometheus.GaugeValue, v, labels)
}

// put sends one value. Names come from agents; a label that is not UTF-8 would fail the
// whole scrape.
func (s samples) put(d *prometheus.Desc, kind prometheus.ValueType, v float64, labels []string) {
	for i := range labels {
		labels[i] = strings.ToValidUTF8(labels[i], "?")
	}
	s <- prometheus.MustNewConstMetric(d, kind, v, labels...)
}

// Collect reads the pool once.
func (g poolGauges) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), scrapeTime)
	defer cancel()
	v, err := g.Pool.View(ctx, scraper)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(coresDesc, err)
		return
	}
	decisions, err := g.Store.Read(ctx).CountDecisions()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(decisionsDesc, err)
		return
	}
	heard, err := g.Store.Read(ctx).Providers() // the pool is not read again for a heartbeat
	if err != nil {
		ch <- prometheus.NewInvalidMetric(seenDesc, err)
		return
	}
	out := samples(ch)
	out.totals(v)
	out.providers(v.Providers)
	for _, p := range heard {
		if p.State != models.ProviderOffline {
			out.gauge(seenDesc, float64(p.SeenAt.UnixMilli())/1000, p.Name)
		}
	}
	out.demand(v)
	for _, outcome := range []string{models.OutcomeGranted, models.OutcomePartial, models.OutcomeDelayed, models.OutcomeRefused} {
		out.put(decisionsDesc, prometheus.CounterValue, float64(decisions[outcome]), []string{outcome})
	}
	for _, p := range v.Providers {
		for _, d := range p.Devices {
			if p.State != models.ProviderLost && d.Present && d.Measured != nil && d.ParentID == nil { // a MIG instance is part of its GPU
				out.device(d)
			}
		}
	}
}

func (s samples) totals(v pool.View) {
	t := v.Totals
	s.gauge(gpusDesc, float64(t.GPUs))
	s.gauge(coresDesc, float64(t.CoresInUse), "in_use")
	s.gauge(coresDesc, float64(t.FreeCores), "free")
	s.gauge(memoryDesc, float64(t.MemoryMiBInUse), "in_use")
	s.gauge(memoryDesc, float64(t.FreeMemoryMiB), "free")
	s.gauge(largestDesc, float64(t.LargestFreeCores))
}

// lendingStates are those of a provider that is in the pool.
var lendingStates = []string{models.ProviderPending, models.ProviderOnline, models.ProviderDraining, models.ProviderRecalled,
	models.ProviderLost}

func (s samples) providers(all []pool.ProviderView) {
	states, shared, troubled := map[string]int{}, map[[2]string]int{}, 0
	for _, p := range all {
		states[p.State]++
		for _, d := range p.Devices {
			if !d.Present {
				continue
			}
			if d.ParentID == nil {
				shared[[2]string{d.Sharing, d.Model}]++
			}
			if !d.Trouble.Empty() {
				troubled++
			}
		}
	}
	for _, state := range lendingStates {
		s.gauge(providersDesc, float64(states[state]), state)
	}
	for key, n := range shared {
		s.gauge(devicesDesc, float64(n), key[0], key[1])
	}
	s.gauge(troubledDesc, float64(troubled))
}

// Label values of unmet demand.
const (
	causeWaiting = "waiting"
	causeRefused = "refused"
	anyModel     = "any"
	otherModel   = "other"
)

func (s samples) demand(v pool.View) {
	cores := int64(0)
	for _, w := range v.Waiting {
		cores += w.Demand.GPUs * w.Demand.Cores
	}
	s.gauge(waitingDesc, float64(len(v.Waiting)))
	s.gauge(waitingCoresDesc, float64(cores))

	known := map[string]bool{}
	for _, p := range v.Providers {
		for _, d := range p.Devices {
			known[d.Model] = true
		}
	}
	type key struct{ cause, model string }
	requests, asked := map[key]int64{}, map[key]int64{}
	for _, u := range v.Unmet {
		model := u.Model
		switch {
		case model == "":
			model = anyModel
		case !known[model]:
			model = otherModel // user input
		}
		for cause, n := range map[string]int64{causeWaiting: u.Waiting, causeRefused: u.Refused} {
			if n > 0 {
				requests[key{cause, model}] += n
				asked[key{cause, model}] += n * u.GPUs * u.Cores
			}
		}
	}
	for k, n := range requests {
		s.gauge(unmetDesc, float64(n), k.cause, k.model)
		s.gauge(unmetCoresDesc, float64(asked[k]), k.cause, k.model)
	}
}

// device sends the last measurement of a device whose agent is alive.
func (s samples) device(d pool.DeviceView) {
	const mib = 1 << 20
	labels := func() []string { return []string{d.ProviderName, d.UUID, d.Model, strconv.FormatBool(d.Simulated)} }
	m := d.Measured
	s.gauge(utilisationDesc, float64(m.Utilisation)/100, labels()...)
	s.gauge(gpuUsedDesc, float64(m.MemoryUsedMiB)*mib, labels()...)
	s.gauge(gpuMemoryDesc, float64(d.MemoryMiB)*mib, labels()...)
	s.gauge(temperatureDesc, float64(m.Temperature), labels()...)
	s.gauge(powerDesc, float64(m.PowerMW)/1000, labels()...)
}
