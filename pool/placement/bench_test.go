package placement

import (
	"math/rand"
	"testing"
)

// benchPool is a pool of 1,000 nodes with 8 devices each, held to about half.
func benchPool() Snapshot {
	r := rand.New(rand.NewSource(1))
	s := Snapshot{Nodes: make([]Node, 1000)}
	for i := range s.Nodes {
		n := node(int64(i + 1))
		for j := range 8 {
			dev := gpu(int64(i*8 + j))
			dev.Index = j
			project := r.Int63n(20)
			for range r.Intn(4) {
				dev.Shares = append(dev.Shares, held(project, 10+r.Int63n(20)))
			}
			n.Devices = append(n.Devices, dev)
		}
		s.Nodes[i] = n
	}
	return s
}

func BenchmarkPlace(b *testing.B) {
	s := benchPool()
	for name, d := range map[string]Demand{
		"fraction": {GPUs: 1, Cores: 30, Project: 7},
		"model":    {GPUs: 1, Cores: 30, Project: 7, Model: "nvidia h100"},
		"four":     {GPUs: 4, Cores: 50, Project: 7},
		"refused":  {GPUs: 8, Cores: 100, Project: 7},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Place(s, d, BestFit())
			}
		})
	}
}

func BenchmarkLargest(b *testing.B) {
	s := benchPool()
	d := Demand{GPUs: 8, Cores: 100, Project: 7}
	b.ReportAllocs()
	for b.Loop() {
		Largest(s, d)
	}
}
