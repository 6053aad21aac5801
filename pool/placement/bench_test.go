package placement

import (
	"math/rand"
	"testing"
)

// benchPool is a pool of 1,213 nodes, as many as the openb trace has, with 8
// devices each, linked, and held to about half.
func benchPool(links bool) Snapshot {
	r := rand.New(rand.NewSource(1))
	s := Snapshot{Nodes: make([]Node, 1213)}
	for i := range s.Nodes {
		n := node(int64(i + 1))
		var group []int64
		for j := range 8 {
			dev := gpu(int64(i*8 + j + 1))
			dev.Index = j
			project := r.Int63n(20)
			for range r.Intn(4) {
				dev.Shares = append(dev.Shares, inUse(project, 10+r.Int63n(20)))
			}
			n.Devices = append(n.Devices, dev)
			group = append(group, dev.ID)
		}
		if links {
			n = linked(n, group[:4], group[4:])
		}
		s.Nodes[i] = n
	}
	return s
}

// benchDemands are also the past from which weir learns.
var benchDemands = map[string]Demand{
	"fraction": {GPUs: 1, Cores: 30, Project: 7},
	"model":    {GPUs: 1, Cores: 30, Project: 7, Model: "nvidia h100"},
	"two":      {GPUs: 2, Cores: 50, Project: 7},
	"four":     {GPUs: 4, Cores: 100, Project: 7},
	"refused":  {GPUs: 8, Cores: 100, Project: 7},
}

func BenchmarkPlace(b *testing.B) {
	var past []Demand
	for _, d := range benchDemands {
		past = append(past, d)
	}
	weir, err := PolicyNamed("weir", past)
	if err != nil {
		b.Fatal(err)
	}
	for pool, s := range map[string]Snapshot{"plain": benchPool(false), "linked": benchPool(true)} {
		for name, d := range benchDemands {
			for _, p := range []Policy{Policy{}, weir} {
				b.Run(pool+"/"+name+"/"+p.Name, func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						Place(s, d, p)
					}
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
				})
			}
		}
	}
}

func BenchmarkLargest(b *testing.B) {
	s := benchPool(false)
	d := Demand{GPUs: 8, Cores: 100, Project: 7}
	b.ReportAllocs()
	for b.Loop() {
		Largest(s, d)
	}
}
