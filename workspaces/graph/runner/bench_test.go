package runner

import (
	"io"
	"runtime"
	"testing"
	"time"

	"weir/workspaces/graph"
	"weir/workspaces/graph/journal"
)

// Two branches that compute, each on a CPU of its own, against one after the other on one:
// serial/parallel is how much faster they are together.
func BenchmarkBranches(b *testing.B) {
	if runtime.NumCPU() < 2 {
		b.Fatal("requires two CPUs")
	}
	const compute = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done"
	g := graph.Graph{Branches: []graph.Branch{script("a", nil, compute), script("b", nil, compute)}}
	took := func(utilization float64) time.Duration {
		began := time.Now()
		result, err := Run(b.Context(), Config{Graph: g, CPUs: 2, Settings: graph.Settings{Utilization: utilization}, Fixed: true,
			Sample: func(time.Duration) ([]graph.CPU, float64, error) { return graph.Machine(2), 0, nil },
			Record: func(journal.Event) error { return nil }, Now: time.Now, Out: io.Discard, Errors: io.Discard, Notes: func(string) {}})
		if err != nil || result.Code != 0 {
			b.Fatalf("%+v: %v", result, err)
		}
		return time.Since(began)
	}
	var parallel, serial time.Duration
	for b.Loop() {
		parallel += took(0)
		serial += took(1)
	}
	b.ReportMetric(serial.Seconds()/parallel.Seconds(), "serial/parallel")
}
