package graph

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// best is the shortest possible longest time over all splits of CPUs into whole numbers of at
// least 1.
func best(times []float64, cpus int) float64 {
	if len(times) == 1 {
		return times[0] / float64(cpus)
	}
	shortest := math.Inf(1)
	for own := 1; own <= cpus-len(times)+1; own++ {
		shortest = min(shortest, max(times[0]/float64(own), best(times[1:], cpus-own)))
	}
	return shortest
}

// remainders splits CPUs by largest remainder with at least 1 each, as a comparison.
func remainders(times []float64, cpus int) []int {
	total := 0.0
	for _, t := range times {
		total += t
	}
	shares, used := make([]int, len(times)), 0
	for i, t := range times {
		shares[i] = max(1, int(float64(cpus)*t/total))
		used += shares[i]
	}
	for ; used < cpus; used++ {
		most := 0
		for i, t := range times {
			if float64(cpus)*t/total-float64(shares[i]) > float64(cpus)*times[most]/total-float64(shares[most]) {
				most = i
			}
		}
		shares[most]++
	}
	for ; used > cpus; used-- {
		shares[slices.Index(shares, slices.Max(shares))]--
	}
	return shares
}

// unbalanced are times of which one exceeds the others by far.
func unbalanced(r *rand.Rand, n int) []float64 {
	times := make([]float64, n)
	for i := range times {
		times[i] = 1 + 9*r.Float64()
	}
	times[r.IntN(n)] *= 5 + 5*r.Float64()
	return times
}

// A fork of independent branches ends at most 1.05 times after the best of all splits, and on
// average over unbalanced forks after at most 0.8 of the time of equal shares; never later than
// one operator after another.
func TestMakespan(t *testing.T) {
	r := rand.New(rand.NewPCG(18, 1))
	worst, worstRemainder, ratio, ideal, forks := 0.0, 0.0, 0.0, 0.0, 0
	for range 3000 {
		cpus := 2 + r.IntN(15)
		times := unbalanced(r, 2+r.IntN(min(4, cpus-1)))
		p := planned(t, fork(times...), Machine(cpus), Settings{})
		optimum := best(times, cpus)
		worst = max(worst, p.Makespan/optimum)
		worstRemainder = max(worstRemainder, longest(times, remainders(times, cpus))/optimum)
		if p.Makespan > p.Serial || p.Makespan > p.Equal+1e-9 {
			t.Fatalf("%v on %d CPUs: %g s, serial %g s, equal %g s", times, cpus, p.Makespan, p.Serial, p.Equal)
		}
		if cpus >= 2*len(times) { // else there is little to share
			ratio, forks = ratio+p.Makespan/p.Equal, forks+1
			ideal += p.Makespan / (slices.Max(times) * float64(len(times)) / float64(cpus))
		}
	}
	t.Logf("worst %.4f of the optimum (largest remainder %.4f); mean %.3f of equal shares, %.3f of equal fractions of CPUs", worst, worstRemainder,
		ratio/float64(forks), ideal/float64(forks))
	if worst > 1.05 {
		t.Errorf("%.4f of the optimum", worst)
	}
	if ratio/float64(forks) > 0.8 {
		t.Errorf("%.3f of equal shares", ratio/float64(forks))
	}
}

// drawGraph is any graph without circles: branches wait for earlier ones.
func drawGraph(t *rapid.T) (g Graph) {
	for i := range rapid.IntRange(1, 12).Draw(t, "branches") {
		b := Branch{Name: fmt.Sprint("b", i)}
		for k := range i {
			if rapid.IntRange(0, 3).Draw(t, "after") == 0 {
				b.After = append(b.After, fmt.Sprint("b", k))
			}
		}
		for range rapid.IntRange(1, 3).Draw(t, "operators") {
			b.Operators = append(b.Operators, Operator{Seconds: rapid.Float64Range(0, 100).Draw(t, "seconds")})
		}
		g.Branches = append(g.Branches, b)
	}
	return g
}

// What holds of every plan: each branch has CPUs once, after those that it waits for; the
// shares of branches that run together are distinct CPUs of the machine within the budget; no plan takes longer
// than one operator after another or equal shares; a revision plans what remains.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t)
		machine := Machine(rapid.IntRange(1, 16).Draw(t, "cpus"))
		for i := range machine {
			machine[i].Node, machine[i].Load = i%rapid.IntRange(1, 3).Draw(t, "nodes"), rapid.Float64Range(0, 1).Draw(t, "load")
		}
		s := Settings{Utilization: rapid.Float64Range(0, 1).Draw(t, "utilization")}
		p, err := Plan(g, machine, s)
		if err != nil {
			t.Fatal(err)
		}
		ended, free := map[string]float64{}, map[int]float64{}
		for _, stage := range p.Stages {
			for _, share := range stage.Shares {
				for _, name := range share.After {
					if until, known := ended[name]; !known || until > stage.From {
						t.Fatalf("%s begins before %s has ended", share.Branch, name)
					}
				}
				for _, id := range share.CPUs {
					if free[id] > stage.From || id < 0 || id >= len(machine) {
						t.Fatalf("CPU %d is used twice or does not exist", id)
					}
					free[id] = share.Until
				}
				if _, twice := ended[share.Branch]; len(share.CPUs) == 0 || twice {
					t.Fatalf("%s has no CPU, or is there twice", share.Branch)
				}
				ended[share.Branch] = share.Until
			}
			used := 0
			for _, until := range free {
				if until > stage.From {
					used++
				}
			}
			if used > p.Budget {
				t.Fatalf("%d CPUs of a budget of %d", used, p.Budget)
			}
		}
		if len(ended) != len(g.Branches) {
			t.Fatalf("%d of %d branches are planned", len(ended), len(g.Branches))
		}
		if most := min(p.Serial, p.Equal) * (1 + 1e-9); p.Makespan > most {
			t.Fatalf("%g s, serial %g s, equal %g s", p.Makespan, p.Serial, p.Equal)
		}
		if none, changed, err := Revise(p, g, nil, machine, s); err != nil || changed || none.Makespan != p.Makespan {
			t.Fatalf("revised without a reason: %v", err)
		}
	})
}

// When utilization rises below the first threshold, no budget grows.
func TestBudgetShrinks(t *testing.T) {
	for n := 1; n <= 64; n++ {
		s, err := Settings{}.complete(n)
		if err != nil {
			t.Fatal(err)
		}
		_, before := s.budget(n)
		for percent := 1; percent <= 70; percent++ {
			s.Utilization = float64(percent) / 100
			_, now := s.budget(n)
			if now > before || now < 1 {
				t.Errorf("%d CPUs: %d at %d %%, %d before", n, now, percent, before)
			}
			before = now
		}
	}
}

func BenchmarkPlan(b *testing.B) {
	for _, branches := range []int{8, 256} {
		r := rand.New(rand.NewPCG(1, 1))
		g := Graph{}
		for i := range branches {
			one := Branch{Name: fmt.Sprint(i), Operators: []Operator{{Seconds: r.Float64()}, {Seconds: r.Float64()}}}
			for k := range i {
				if r.IntN(branches) < 2 {
					one.After = append(one.After, fmt.Sprint(k))
				}
			}
			g.Branches = append(g.Branches, one)
		}
		b.Run(fmt.Sprintf("branches=%d/cpus=256", branches), func(b *testing.B) {
			machine := Machine(256)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Plan(g, machine, Settings{Utilization: 0.2}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
