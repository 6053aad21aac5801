package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// report is what a run has measured, also as JSON.
type report struct {
	At          time.Time         `json:"at"`
	Versions    map[string]string `json:"versions"`
	Database    string            `json:"database"`
	Processors  string            `json:"processors"`
	Load        [2]string         `json:"load_average"` // before and after
	Connections int               `json:"connections"`
	Rounds      int               `json:"rounds"`
	Seconds     float64           `json:"seconds"` // of each measurement
	Results     []result          `json:"results"`
	Ratios      []ratio           `json:"ratios"`
}

// spread is the median of the rounds with the extremes.
type spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

func spreadOf(values []float64) spread {
	slices.Sort(values)
	n := len(values)
	return spread{(values[(n-1)/2] + values[n/2]) / 2, values[0], values[n-1]}
}

// result is what was measured of one candidate.
type result struct {
	Name      string   `json:"name"`
	Bytes     int      `json:"bytes"` // of the answer's body
	Rate      spread   `json:"requests_per_second"`
	P50       spread   `json:"p50_ms"`
	P99       spread   `json:"p99_ms"`
	CPU       spread   `json:"server_cpu_us"` // of one request
	Generator float64  `json:"generator_cpus"`
	samples   []sample // by round
}

func resultOf(c candidate, samples []sample) result {
	column := func(value func(sample) float64) spread {
		var values []float64
		for _, s := range samples {
			values = append(values, value(s))
		}
		return spreadOf(values)
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return result{Name: c.Name, Bytes: c.length, samples: samples,
		Rate:      column(func(s sample) float64 { return s.Rate }),
		P50:       column(func(s sample) float64 { return ms(s.P50) }),
		P99:       column(func(s sample) float64 { return ms(s.P99) }),
		CPU:       column(func(s sample) float64 { return float64(s.CPU.Nanoseconds()) / 1000 }),
		Generator: column(func(s sample) float64 { return s.Generator }).Median,
	}
}

// ratio compares two candidates round by round: their requests per second, and
// how many requests the same processor time serves, which depends less on what
// else the machine does.
type ratio struct {
	Of   string  `json:"of"`
	To   string  `json:"to"`
	Goal float64 `json:"goal"` // of Rate, at least
	Rate spread  `json:"requests_per_second"`
	CPU  spread  `json:"requests_per_cpu"`
}

// ratiosOf compares what has been measured: notebooks through Weir with the
// other proxy and with no proxy, pages with JupyterHub's.
func ratiosOf(results []result) (ratios []ratio) {
	byName := map[string]result{}
	for _, r := range results {
		byName[r.Name] = r
	}
	compare := func(of, to string, goal float64) {
		a, b := byName[of].samples, byName[to].samples
		var rates, cpus []float64
		for i := range min(len(a), len(b)) {
			rates = append(rates, a[i].Rate/b[i].Rate)
			cpus = append(cpus, float64(b[i].CPU)/float64(max(a[i].CPU, 1)))
		}
		if len(rates) > 0 {
			ratios = append(ratios, ratio{of, to, goal, spreadOf(rates), spreadOf(cpus)})
		}
	}
	for _, gate := range []string{nameCookie, nameToken} {
		compare(gate, nameProxy, 3)
		compare(gate, nameDirect, 0.35)
		compare(gate, nameNginx, 0.5)
		compare(gate, nameCaddy, 2)
	}
	compare(nameStart, nameHubRun, 2.5)
	for _, r := range results {
		switch {
		case strings.HasSuffix(r.Name, suffixFirst):
			compare(r.Name, nameHub+suffixAlone, 5)
		case strings.HasPrefix(r.Name, pagePrefix):
			compare(r.Name, nameHub, 3)
		}
	}
	return ratios
}

func (r report) print(out io.Writer) {
	for _, name := range []string{"Weir", "configurable-http-proxy", "Node", "nginx", "Caddy", "JupyterHub"} {
		fmt.Fprintf(out, "%s: %s\n", name, r.Versions[name])
	}
	fmt.Fprintf(out, "Weir's database: %s\n%s\nLoad average: %s before, %s after\n", r.Database, r.Processors, r.Load[0], r.Load[1])
	fmt.Fprintf(out, "%d connections, %d rounds of %g s each: median (lowest–highest)\n\n", r.Connections, r.Rounds, r.Seconds)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\trequests/s\tp50 ms\tp99 ms\tserver CPU µs/request\tbody bytes\tgenerator CPUs")
	for _, x := range r.Results {
		if x.Bytes > 0 {
			fmt.Fprintf(t, "%s\t%.0f (%.0f–%.0f)\t%.2f\t%.2f\t%.0f (%.0f–%.0f)\t%d\t%.2f\n", x.Name, x.Rate.Median, x.Rate.Min, x.Rate.Max,
				x.P50.Median, x.P99.Median, x.CPU.Median, x.CPU.Min, x.CPU.Max, x.Bytes, x.Generator)
		}
	}
	t.Flush()
	fmt.Fprintln(t, "\n\tms until the first response")
	for _, x := range r.Results {
		if x.Bytes == 0 {
			fmt.Fprintf(t, "%s\t%.0f (%.0f–%.0f)\n", x.Name, x.P50.Median, x.P50.Min, x.P50.Max)
		}
	}
	t.Flush()
	fmt.Fprintln(t, "\n\trequests/s\tgoal\trequests per CPU second")
	for _, x := range r.Ratios {
		cpu := fmt.Sprintf("%.2f (%.2f–%.2f)", x.CPU.Median, x.CPU.Min, x.CPU.Max)
		if x.CPU.Max == 0 {
			cpu = "not measured"
		}
		fmt.Fprintf(t, "%s / %s\t%.2f (%.2f–%.2f)\t%.2f\t%s\n", x.Of, x.To, x.Rate.Median, x.Rate.Min, x.Rate.Max, x.Goal, cpu)
	}
	t.Flush()
}

func (r report) writeJSON(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
