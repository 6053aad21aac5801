package fleet_test

import (
	"compress/gzip"
	"io"
	"math/rand"
	"os"
	"testing"

	"weir/pool/placement/fleet"
	"weir/pool/placement/trace"
)

func openb[T any](t *testing.T, name string, read func(io.Reader, string) (T, error)) T {
	t.Helper()
	f, err := os.Open("../trace/testdata/" + name + ".csv.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	table, err := read(z, name)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// On the trace, too, each decision is that of a full scan: on the first tasks,
// and once it is nearly full.
func TestPrefixIsTheFullScan(t *testing.T) {
	nodes := openb(t, "openb_node_list_gpu_node", trace.ReadNodes)[:300]
	var workload []fleet.Task
	for _, p := range openb(t, "openb_pod_list_gpuspec10", trace.ReadPods) {
		workload = append(workload, p.Task)
	}
	for _, policy := range fleet.Policies() {
		f, err := fleet.New(nodes, policy, workload, rand.New(rand.NewSource(1)))
		if err != nil {
			t.Fatal(err)
		}
		for i, task := range workload[:2000] {
			if i > 100 && i%40 != 0 {
				f.Place(task)
				continue
			}
			node, fits := f.Scan(policy, workload, task)
			g, ok := f.Place(task)
			if ok != fits || ok && policy != fleet.Random && g.Node != node {
				t.Fatalf("%s, task %d %+v: on %d (%v), the scan says %d (%v)", policy, i, task, g.Node, ok, node, fits)
			}
		}
	}
}
