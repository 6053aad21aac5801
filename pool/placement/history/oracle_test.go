package history

import (
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/pool/placement"
)

func drawNodes(t *rapid.T, label string) (nodes []placement.Node) {
	for range rapid.IntRange(0, 2).Draw(t, label) {
		m := Machines{Model: rapid.SampledFrom([]string{h100, a100}).Draw(t, "model"), MemoryMiB: 1000, Count: 1,
			GPUs: rapid.IntRange(1, 3).Draw(t, "GPUs")}.Nodes()
		m[0].Devices[0].Exclusive = rapid.IntRange(0, 3).Draw(t, "exclusive") == 0
		m[0].Devices[0].Mixed = rapid.Bool().Draw(t, "mixed")
		nodes = Join(nodes, m)
	}
	return nodes
}

func drawJobs(t *rapid.T) (jobs []Job) {
	for range rapid.IntRange(0, 14).Draw(t, "jobs") {
		j := asking(rapid.SampledFrom([]string{"", "h100", "a100"}).Draw(t, "requested"),
			job(float64(rapid.IntRange(0, 8).Draw(t, "arrives")), float64(rapid.IntRange(0, 5).Draw(t, "lasts")),
				rapid.IntRange(0, 3).Draw(t, "gpus"), rapid.SampledFrom([]int64{20, 50, 60, 100}).Draw(t, "cores")))
		j.Demand.Project = rapid.Int64Range(1, 2).Draw(t, "project")
		jobs = append(jobs, j)
	}
	return jobs
}

// past is the plainest form of a replay: every hour, who is due leaves, then
// everybody who waits is tried on all nodes by Place alone.
type past struct {
	nodes   []placement.Node
	ends    map[int64]int // by job, the hour
	waits   []time.Duration
	refused int
}

func (p *past) hour(hour int, waiting []int64, jobs []Job) (still []int64) {
	for again := true; again; {
		again = false
		for i := range p.nodes {
			for j := range p.nodes[i].Devices {
				d := &p.nodes[i].Devices[j]
				d.Shares = slices.DeleteFunc(d.Shares, func(s placement.Share) bool { return p.ends[s.Holder] <= hour })
			}
		}
		still = nil
		for _, id := range waiting {
			if !p.place(hour, id, jobs[id]) {
				still = append(still, id)
			} else if jobs[id].Lasts == 0 {
				again = true // it has left at once: there is room again
			}
		}
		waiting = still
	}
	return still
}

func (p *past) place(hour int, id int64, j Job) bool {
	choice, ok := placement.New((placement.Snapshot{Nodes: p.nodes}).Nodes, placement.Policy{}).Find(j.Demand)
	if !ok {
		return false
	}
	p.ends[id] = hour + int(j.Lasts.Hours())
	p.waits = append(p.waits, start.Add(hoursOf(float64(hour))).Sub(j.Arrived))
	for _, g := range choice.Devices {
		for i := range p.nodes {
			for k := range p.nodes[i].Devices {
				if d := &p.nodes[i].Devices[k]; d.ID == g.Device {
					d.Shares = append(d.Shares, placement.Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, Project: j.Demand.Project, Holder: id})
				}
			}
		}
	}
	return true
}

// TestReplayAgreesWithEveryHour lets no two jobs arrive at once and none last
// for nothing, because then it is the order within the hour that decides.
func TestReplayAgreesWithEveryHour(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, jobs := drawNodes(t, "nodes"), drawJobs(t)
		hour := 0
		for i := range jobs {
			hour += rapid.IntRange(1, 3).Draw(t, "pause")
			jobs[i].Arrived = start.Add(hoursOf(float64(hour)))
			jobs[i].Lasts = max(jobs[i].Lasts, time.Hour)
		}
		p := past{ends: map[int64]int{}}
		for _, n := range nodes {
			n.Devices = slices.Clone(n.Devices)
			p.nodes = append(p.nodes, n)
		}
		var waiting []int64
		for h := range hour + 100 {
			// Who waits is served before who comes.
			waiting = p.hour(h, waiting, jobs)
			for i, j := range jobs {
				if j.Arrived.Equal(start.Add(hoursOf(float64(h)))) {
					if never := placement.Refuse(placement.Snapshot{Nodes: nodes}, j.Demand); never != nil {
						p.refused++
					} else {
						waiting = append(waiting, p.hour(h, []int64{int64(i)}, jobs)...)
					}
				}
			}
		}
		r := simulate(nodes, jobs, placement.Policy{})
		slices.Sort(p.waits)
		slices.Sort(r.waits)
		if !slices.Equal(r.waits, p.waits) || len(waiting) > 0 || len(jobs)-len(r.waits) != p.refused {
			t.Fatalf("waits %v, hour by hour %v; %d refused, %d", r.waits, p.waits, len(jobs)-len(r.waits), p.refused)
		}
	})
}

func TestNothingIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, jobs := drawNodes(t, "nodes"), drawJobs(t)
		shuffled := rapid.Permutation(jobs).Draw(t, "order")
		r := Replay(nodes, shuffled, placement.Policy{})
		if r.Placed+r.Refused != len(jobs) || r.Jobs != len(jobs) || r.Waited > r.Placed || len(r.Points) > MaxPoints {
			t.Fatalf("%+v", r)
		}
		refused, waited, asked, refusedHours, waitedHours, inUse, queued := 0, 0, 0., 0., 0., 0., 0.
		for _, u := range r.Unmet {
			refused, waited = refused+u.Refused, waited+u.Waited
			refusedHours, waitedHours = refusedHours+u.RefusedCoreHours, waitedHours+u.WaitedCoreHours
		}
		for _, j := range jobs {
			asked += float64(coresOf(j.Demand)) * j.Lasts.Hours()
		}
		for _, p := range r.Points {
			if p.InUse > p.Capacity+1e-6 {
				t.Fatalf("%v of %v cores are in use", p.InUse, p.Capacity)
			}
			inUse, queued = inUse+p.InUse, queued+p.Waiting
		}
		span := r.To.Sub(r.From).Hours() / float64(max(len(r.Points), 1))
		if refused != r.Refused || waited != r.Waited || !near(asked, r.CoreHours+refusedHours) ||
			!near(inUse*span, r.CoreHours) || !near(queued*span, waitedHours) {
			t.Fatalf("asked %v, waited %v, in use %v, queued %v: %+v", asked, waitedHours, inUse*span, queued*span, r)
		}
	})
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*(1+math.Abs(a)) }

// With more machines nobody is refused who was not before. That nobody waits
// longer cannot be said: who is served earlier can be in another's way.
func TestMoreMachinesRefuseNobodyElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, extra, jobs := drawNodes(t, "nodes"), drawNodes(t, "extra"), drawJobs(t)
		now, then := Compare(nodes, extra, jobs, placement.Policy{})
		if then.Refused > now.Refused || then.CapacityCores < now.CapacityCores || then.CoreHours < now.CoreHours-1e-6 || !then.To.Equal(now.To) {
			t.Fatalf("now %+v\nthen %+v", now, then)
		}
	})
}

// busy is a history that asks for about so much of 200 machines with 8 GPUs,
// by 20 projects in many sizes.
func busy(n int, load float64) (jobs []Job) {
	r := rand.New(rand.NewSource(1))
	sizes := []placement.Demand{{GPUs: 1, Cores: 20}, {GPUs: 1, Cores: 50}, {GPUs: 1, Cores: 100}, {GPUs: 2, Cores: 100}, {GPUs: 4, Cores: 100}, {GPUs: 8, Cores: 100}}
	at, mean := 0., 265. // cores that a job asks for
	for range n {
		d := sizes[r.Intn(len(sizes))]
		d.Project, d.Model = r.Int63n(20), []string{"", "h100", "a100"}[r.Intn(3)]
		at += r.ExpFloat64() * 4 * mean / (160_000 * load)
		jobs = append(jobs, Job{Arrived: start.Add(hoursOf(at)), Lasts: hoursOf(4 * r.ExpFloat64()), Demand: d})
	}
	return jobs
}

func BenchmarkReplay(b *testing.B) {
	nodes := Join(machines(h100, 100, 8), machines(a100, 100, 8))
	for _, load := range []float64{0.5, 0.9, 1.5} {
		jobs := busy(100_000, load)
		demands := make([]placement.Demand, len(jobs))
		for i, j := range jobs {
			demands[i] = j.Demand
		}
		for _, name := range []string{"best-fit", "weir"} {
			policy, err := placement.PolicyNamed(name, demands)
			if err != nil {
				b.Fatal(err)
			}
			b.Run(fmt.Sprintf("load=%.1f/%s", load, name), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					Replay(nodes, jobs, policy)
				}
			})
		}
	}
}
