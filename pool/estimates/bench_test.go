package estimates

import (
	"math/rand"
	"testing"

	"weir/pool/placement"
)

// BenchmarkEstimate is 200 requests that wait for 200 full nodes with 8
// devices each, held by 3,200 holders.
func BenchmarkEstimate(b *testing.B) {
	r := rand.New(rand.NewSource(1))
	var s placement.Snapshot
	var list []End
	holder := int64(0)
	for i := range int64(200) {
		n := node(i + 1)
		for j := range int64(8) {
			d := gpu(10*i+j, holder+1, 60, holder+2, 40)
			list = append(list, leaves(holder+1, r.Intn(1000)), leaves(holder+2, r.Intn(1000)))
			holder += 2
			n.Devices = append(n.Devices, d)
		}
		s.Nodes = append(s.Nodes, n)
	}
	var waiting []Waiting
	for i := range int64(200) {
		waiting = append(waiting, asks(10_000+i, 1<<r.Intn(4), []int64{50, 100}[r.Intn(2)], lasts(1+r.Intn(500)), firm(r.Intn(20))))
	}
	b.ReportAllocs()
	for b.Loop() {
		EstimateEach(s, list, waiting, now, placement.Policy{})
	}
}
