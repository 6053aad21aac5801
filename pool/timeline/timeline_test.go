package timeline

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// list is the plain form: all spans, each looked at for each question.
type list []entry

type entry struct {
	span   Span
	amount Amount
}

func (l list) at(at int64) (use Amount) {
	for _, e := range l {
		if e.span.From <= at && at < e.span.Until {
			use = use.plus(e.amount)
		}
	}
	return use
}

// times are the beginnings of the steps in a span.
func (l list) times(s Span) []int64 {
	times := []int64{s.From}
	for _, e := range l {
		for _, at := range []int64{e.span.From, e.span.Until} {
			if s.From < at && at < s.Until {
				times = append(times, at)
			}
		}
	}
	slices.Sort(times)
	return times
}

func (l list) max(s Span) (highest Amount) {
	if s.From >= s.Until {
		return highest
	}
	highest = l.at(s.From)
	for _, at := range l.times(s) {
		highest = higher(highest, l.at(at))
	}
	return highest
}

// earliest tries the beginning of the window and the end of each span.
func (l list) earliest(limit Amount, duration int64, window Span) (int64, bool) {
	for _, at := range l.times(Span{window.From, window.Until - duration + 1}) {
		if l.max(Span{at, at + duration}).within(limit) {
			return at, at+duration <= window.Until
		}
	}
	return 0, false
}

func drawSpan(t *rapid.T) Span {
	from := rapid.Int64Range(0, 60).Draw(t, "from")
	return Span{from, from + rapid.Int64Range(0, 30).Draw(t, "length")}
}

func drawAmount(t *rapid.T) Amount {
	return Amount{rapid.Int64Range(0, 4).Draw(t, "cores"), rapid.Int64Range(0, 4).Draw(t, "memory")}
}

// Any history gives the same answers as the plain list.
func TestAgainstAList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var line Timeline
		var all list
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				e := entry{drawSpan(t), drawAmount(t)}
				line.Add(e.span, e.amount)
				all = append(all, e)
			},
			"remove": func(t *rapid.T) {
				if len(all) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(all)-1).Draw(t, "index")
				line.Add(all[i].span, Amount{}.minus(all[i].amount))
				all = slices.Delete(all, i, i+1)
			},
			"": func(t *rapid.T) {
				s := drawSpan(t)
				if got, want := line.Max(s), all.max(s); got != want {
					t.Fatalf("the maximum of %v is %v, want %v", s, got, want)
				}
				limit, duration := drawAmount(t), rapid.Int64Range(1, 20).Draw(t, "duration")
				got, found := line.Earliest(limit, duration, s)
				want, exists := all.earliest(limit, duration, s)
				if found != exists || found && got != want {
					t.Fatalf("the earliest of %v for %d in %v is %d %t, want %d %t", limit, duration, s, got, found, want, exists)
				}
				check(t, &line)
			},
		})
	})
}

// check holds what a timeline must be inside: sorted steps, none without a change, bounds
// that are true, and no chunk that is empty or too large.
func check(t *rapid.T, line *Timeline) {
	var last *step
	for i, c := range line.chunks {
		if len(c.steps) == 0 || len(c.steps) > chunkSize {
			t.Fatalf("chunk %d has %d steps", i, len(c.steps))
		}
		at, low, high := c.at, c.low, c.high
		if c.measure(); c.at != at || c.low != low || c.high != high {
			t.Fatalf("chunk %d at %d: from %v to %v, want %d: from %v to %v", i, at, low, high, c.at, c.low, c.high)
		}
		for k := range c.steps {
			now := step{c.steps[k].at, c.use(k)}
			if last != nil && (last.at >= now.at || last.use == now.use) {
				t.Fatalf("step %v follows %v", now, *last)
			}
			last = &now
		}
	}
}

// Chunks are split and removed as well: many steps, at times that are everywhere.
func TestManySteps(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var line Timeline
	var all list
	for range 1500 {
		from := r.Int64N(100_000)
		e := entry{Span{from, from + 1 + r.Int64N(2000)}, Amount{1 + r.Int64N(50), r.Int64N(1000)}}
		line.Add(e.span, e.amount)
		all = append(all, e)
	}
	compare := func() {
		t.Helper()
		for range 200 {
			from := r.Int64N(100_000)
			s := Span{from, from + r.Int64N(50_000)}
			if got, want := line.Max(s), all.max(s); got != want {
				t.Fatalf("the maximum of %v is %v, want %v", s, got, want)
			}
		}
		for range 20 {
			limit, duration := Amount{r.Int64N(1200), 100_000}, 1+r.Int64N(3000)
			window := Span{r.Int64N(50_000), 100_000}
			got, found := line.Earliest(limit, duration, window)
			if want, exists := all.earliest(limit, duration, window); found != exists || found && got != want {
				t.Fatalf("the earliest of %v for %d in %v is %d %t, want %d %t", limit, duration, window, got, found, want, exists)
			}
		}
	}
	if len(line.chunks) < 20 {
		t.Fatalf("%d chunks", len(line.chunks))
	}
	compare()
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for len(all) > 0 {
		last := all[len(all)-1]
		line.Add(last.span, Amount{}.minus(last.amount))
		if all = all[:len(all)-1]; len(all) == 300 {
			compare()
		}
	}
	if len(line.chunks) != 1 || len(line.chunks[0].steps) != 1 {
		t.Errorf("when all is removed, %d chunks are left", len(line.chunks))
	}
}
