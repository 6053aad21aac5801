package estimates

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/pool/placement"
)

func drawCase(t *rapid.T) (s placement.Snapshot, list []End, waiting []Waiting) {
	models := rapid.SampledFrom([]string{h100, h100, a100})
	for i := range rapid.Int64Range(1, 3).Draw(t, "nodes") {
		n := node(i + 1)
		if rapid.IntRange(0, 3).Draw(t, "restricted") == 0 {
			n.Projects = []int64{1}
		}
		for j := range rapid.Int64Range(0, 3).Draw(t, "devices") {
			d := as(models.Draw(t, "model"), gpu(10*(i+1)+j))
			d.Mixed, d.Exclusive = rapid.Bool().Draw(t, "mixed"), rapid.IntRange(0, 4).Draw(t, "exclusive") == 0
			for range rapid.IntRange(0, 2).Draw(t, "shares") {
				d.Shares = append(d.Shares, placement.Share{Holder: rapid.Int64Range(1, 5).Draw(t, "holder"),
					Cores: rapid.Int64Range(10, 50).Draw(t, "in_use"), Project: rapid.Int64Range(1, 2).Draw(t, "by")})
			}
			n.Devices = append(n.Devices, d)
		}
		s.Nodes = append(s.Nodes, n)
	}
	for holder := range rapid.Int64Range(0, 5).Draw(t, "ends") {
		list = append(list, leaves(holder+1, rapid.IntRange(-1, 6).Draw(t, "leaves")))
	}
	for i := range rapid.Int64Range(1, 6).Draw(t, "waiting") {
		w := asks(101+i, rapid.IntRange(0, 3).Draw(t, "gpus"), rapid.Int64Range(10, 100).Draw(t, "cores"),
			lasts(rapid.IntRange(0, 4).Draw(t, "lasts")), model(rapid.SampledFrom([]string{"", "h100", "a100"}).Draw(t, "requested")))
		w.Demand.Project = rapid.Int64Range(1, 2).Draw(t, "project")
		if rapid.Bool().Draw(t, "becomes firm") {
			w.Firm = now.Add(minutes(rapid.IntRange(-1, 5).Draw(t, "firm")))
		}
		waiting = append(waiting, w)
	}
	return s, list, waiting
}

// world is the plainest form of a forecast: everything is looked at anew in
// every minute, and by nothing but Place.
type world struct {
	pool    placement.Snapshot
	ends    map[int64]time.Time
	waiting []Waiting
	at      map[int64]time.Time // by holder, when it was placed
}

func (w *world) minute(t time.Time) {
	for i := range w.pool.Nodes {
		for j := range w.pool.Nodes[i].Devices {
			d := &w.pool.Nodes[i].Devices[j]
			d.Shares = slices.DeleteFunc(d.Shares, func(s placement.Share) bool {
				end, ends := w.ends[s.Holder]
				return ends && !end.After(t)
			})
		}
	}
	for i := range w.waiting {
		if _, placed := w.at[w.waiting[i].Holder]; !placed && !w.kept(i, t) {
			w.place(w.waiting[i], t)
		}
	}
}

// kept tells whether an earlier request keeps room that this one wants.
func (w *world) kept(i int, t time.Time) bool {
	return slices.ContainsFunc(w.waiting[:i], func(f Waiting) bool {
		_, placed := w.at[f.Holder]
		return !placed && !f.Firm.IsZero() && !f.Firm.After(t) && w.ever(f) && w.sameModel(f, w.waiting[i])
	})
}

func (w *world) ever(f Waiting) bool {
	refusal := placement.Refuse(w.pool.Emptied(), f.Demand)
	return refusal == nil
}

func (w *world) sameModel(a, b Waiting) bool {
	for _, n := range w.pool.Nodes {
		for _, d := range n.Devices {
			if a.Demand.GPUs > 0 && b.Demand.GPUs > 0 && placement.MatchesModel(d.Model, a.Demand.Model) && placement.MatchesModel(d.Model, b.Demand.Model) {
				return true
			}
		}
	}
	return false
}

// clone copies a snapshot down to its shares.
func clone(s placement.Snapshot) placement.Snapshot {
	copied := s.Emptied()
	for i := range s.Nodes {
		for j := range s.Nodes[i].Devices {
			copied.Nodes[i].Devices[j].Shares = slices.Clone(s.Nodes[i].Devices[j].Shares)
		}
	}
	return copied
}

func (w *world) place(r Waiting, t time.Time) {
	choice, ok := placement.New((w.pool).Nodes, placement.Policy{}).Find(r.Demand)
	if !ok {
		return
	}
	w.at[r.Holder] = t
	if r.Lasts > 0 {
		w.ends[r.Holder] = t.Add(r.Lasts)
	}
	for _, g := range choice.Devices {
		for i := range w.pool.Nodes {
			for j := range w.pool.Nodes[i].Devices {
				if d := &w.pool.Nodes[i].Devices[j]; d.ID == g.Device {
					d.Shares = append(d.Shares, placement.Share{Holder: r.Holder, Cores: g.Cores, MemoryMiB: g.MemoryMiB, Project: r.Demand.Project})
				}
			}
		}
	}
}

func TestForecastAgreesWithEveryMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, list, waiting := drawCase(t)
		got := EstimateEach(s, list, waiting, now, placement.Policy{})
		w := world{pool: clone(s), ends: map[int64]time.Time{}, waiting: waiting, at: map[int64]time.Time{}}
		for _, e := range list {
			w.ends[e.Holder] = e.At
		}
		events := map[time.Time]bool{now: true}
		for m := range 60 {
			at := now.Add(minutes(m))
			// The pool moves when somebody leaves; a minute in which nobody
			// does may not be the one in which a request becomes firm.
			for _, end := range w.ends {
				events[at] = events[at] || end.Equal(at)
			}
			if events[at] {
				w.minute(at)
			}
		}
		for i, e := range got {
			at, placed := w.at[waiting[i].Holder]
			want := Unknown
			switch {
			case placed:
				want = Placed
			case !w.ever(waiting[i]):
				want = Never
			}
			if e.Outcome != want || placed && !e.At.Equal(at) {
				t.Fatalf("%s; minute by minute %d is %v at %v", say(got), e.Holder, want, at.Sub(now))
			}
		}
	})
}

// What an estimate names must leave, and can: all of it has left by then, and
// what waits for nobody is placed now.
func TestWhatIsWaitedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, list, waiting := drawCase(t)
		got := EstimateEach(s, list, waiting, now, placement.Policy{})
		ends := map[int64]time.Time{}
		for _, e := range list {
			ends[e.Holder] = e.At
		}
		firm := map[int64]bool{}
		for i, e := range got {
			if e.Outcome == Placed && waiting[i].Lasts > 0 {
				ends[e.Holder] = e.At.Add(waiting[i].Lasts)
			}
			firm[e.Holder] = !waiting[i].Firm.IsZero()
		}
		for _, e := range got {
			if e.Outcome == Placed && (e.At.Before(now) || e.At.After(now) && len(e.After) == 0) || e.Outcome == Unknown && len(e.After) == 0 {
				t.Fatalf("%d: %s", e.Holder, say(got))
			}
			for _, holder := range e.After {
				end, has := ends[holder]
				ready := has && !end.After(e.At)
				if e.Outcome == Placed && !ready && !firm[holder] || e.Outcome == Unknown && has && !firm[holder] {
					t.Fatalf("%d waits for %d: %s", e.Holder, holder, say(got))
				}
			}
		}
	})
}

// No estimate is earlier than possible: with everybody away who is expected
// to have left by then, and no other request, it must fit.
func TestNoEstimateIsTooEarly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, list, waiting := drawCase(t)
		for i, e := range EstimateEach(s, list, waiting, now, placement.Policy{}) {
			if e.Outcome != Placed {
				continue
			}
			w := world{pool: clone(s), ends: map[int64]time.Time{}, at: map[int64]time.Time{}}
			for _, end := range list {
				w.ends[end.Holder] = end.At
			}
			w.minute(e.At)
			if w.place(waiting[i], e.At); len(w.at) == 0 {
				t.Fatalf("%d does not fit at %v", e.Holder, e.At.Sub(now))
			}
		}
	})
}

// Another machine never delays a request that is first and keeps room. Of the
// others this cannot be said: one that is placed earlier may then be in the
// way of another.
func TestAnotherMachineDoesNotDelayTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, list, waiting := drawCase(t)
		waiting[0].Firm = now
		before := EstimateEach(s, list, waiting, now, placement.Policy{})[0]
		s.Nodes = append(s.Nodes, node(9, gpu(91), as(a100, gpu(92)), gpu(93)))
		after := EstimateEach(s, list, waiting, now, placement.Policy{})[0]
		if before.Outcome == Placed && (after.Outcome != Placed || after.At.After(before.At)) {
			t.Fatalf("%s, with another machine %s", say([]Estimate{before}), say([]Estimate{after}))
		}
	})
}
