package queue

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/pool/placement"
)

var now = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

const overdueAfter = 10 * time.Minute

// ask is a request for one GPU's cores by a project with a quota of 1000
// that has waited for some minutes.
func ask(id, project int64, minutes int, change ...func(*Request)) Request {
	r := Request{ID: id, Project: project, Priority: 50, Quota: 1000,
		Demand: placement.Demand{GPUs: 1, Cores: 100, Project: project}, Since: now.Add(-time.Duration(minutes) * time.Minute)}
	for _, c := range change {
		c(&r)
	}
	return r
}

func priority(n int) func(*Request)  { return func(r *Request) { r.Priority = n } }
func holds(n int64) func(*Request)   { return func(r *Request) { r.InUse = n } }
func quota(n int64) func(*Request)   { return func(r *Request) { r.Quota = n } }
func wants(gpus int) func(*Request)  { return func(r *Request) { r.Demand.GPUs = gpus } }
func say(ranked []Ranked) (s string) { return strings.TrimSpace(fmt.Sprintln(words(ranked)...)) }

func words(ranked []Ranked) (list []any) {
	for i, r := range ranked {
		if r.Position != i+1 {
			return []any{"the place is wrong at", i}
		}
		list = append(list, fmt.Sprintf("%d:%s", r.ID, r.Behind))
	}
	return list
}

func TestOrder(t *testing.T) {
	for name, c := range map[string]struct {
		requests []Request
		want     string
	}{
		"nobody":          {nil, ""},
		"one":             {[]Request{ask(1, 1, 0)}, "1:first"},
		"the older":       {[]Request{ask(1, 1, 1), ask(2, 2, 2)}, "2:first 1:age"},
		"the smaller ID":  {[]Request{ask(2, 1, 1), ask(1, 2, 1)}, "1:first 2:age"},
		"by priority":     {[]Request{ask(1, 1, 60, priority(0)), ask(2, 2, 0, priority(100)), ask(3, 3, 0)}, "2:first 3:priority 1:priority"},
		"overdue":         {[]Request{ask(1, 1, 9), ask(2, 2, 10, holds(900)), ask(3, 3, 11, holds(990))}, "3:first 2:age 1:overdue"},
		"by part":         {[]Request{ask(1, 1, 9, holds(500)), ask(2, 2, 1, holds(499))}, "2:first 1:fairness"},
		"part, not cores": {[]Request{ask(1, 1, 1, holds(100), quota(200)), ask(2, 2, 1, holds(400))}, "2:first 1:fairness"},
		"no quota":        {[]Request{ask(1, 1, 9, quota(0)), ask(2, 2, 1, holds(5000)), ask(3, 3, 9, quota(0))}, "2:first 1:fairness 3:age"},
		"taking turns": {[]Request{ask(1, 1, 9), ask(2, 1, 8), ask(3, 1, 7), ask(4, 2, 6), ask(5, 2, 5), ask(6, 2, 4)},
			"1:first 4:age 2:fairness 5:age 3:fairness 6:age"},
		"turns by size": {[]Request{ask(1, 1, 9, wants(2)), ask(2, 1, 8, wants(2)), ask(4, 2, 6), ask(5, 2, 5), ask(6, 2, 4)},
			"1:first 4:age 5:age 2:fairness 6:age"},
		"what the patient get counts": {[]Request{ask(1, 1, 20, wants(3)), ask(2, 1, 9), ask(3, 2, 8, holds(200))},
			"1:first 3:overdue 2:fairness"},
		"the most in use and the least quota": {[]Request{ask(1, 1, 9), ask(2, 1, 1, holds(500), quota(600)), ask(3, 2, 1, holds(700))},
			"3:first 1:fairness 2:age"},
		"numbers beyond counting": {[]Request{ask(1, 1, 9, holds(math.MaxInt64), quota(math.MaxInt64)), ask(2, 2, 1, holds(-5), wants(math.MaxInt))},
			"2:first 1:fairness"},
	} {
		if got := say(Order(c.requests, now, overdueAfter)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestWithoutOverdueByAge(t *testing.T) {
	requests := []Request{ask(1, 1, 0, holds(0)), ask(2, 2, 2, holds(900)), ask(3, 3, 1, priority(60))}
	if got := say(Order(requests, now, 0)); got != "3:first 2:priority 1:age" {
		t.Error(got)
	}
}

func TestCriterionNames(t *testing.T) {
	for c, want := range map[Criterion]string{First: "first", Age: "age", -1: "unknown", criterionCount: "unknown"} {
		if got := c.String(); got != want {
			t.Errorf("%d: %s", c, got)
		}
	}
}

func drawQueue(t *rapid.T) (requests []Request) {
	for i := range rapid.IntRange(0, 12).Draw(t, "requests") {
		project := rapid.Int64Range(1, 4).Draw(t, "project")
		requests = append(requests, ask(int64(i+1), project, rapid.IntRange(0, 15).Draw(t, "minutes"),
			priority(rapid.SampledFrom([]int{50, 50, 70}).Draw(t, "priority")),
			holds(100*project), quota(rapid.SampledFrom([]int64{0, 300, 1000}).Draw(t, "quota")),
			wants(rapid.IntRange(0, 3).Draw(t, "gpus"))))
	}
	return requests
}

// ratio is the part of its quota that a project holds, as a fraction; nil for
// no quota.
func ratio(requests []Request, project int64, granted int64) *big.Rat {
	inUse, quota := int64(0), int64(math.MaxInt64)
	for _, r := range requests {
		if r.Project == project {
			inUse, quota = max(inUse, r.InUse), min(quota, r.Quota)
		}
	}
	if quota == 0 {
		return nil
	}
	return big.NewRat(inUse+granted, quota)
}

func compareRatios(a, b *big.Rat) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return a.Cmp(b)
}

// next chooses by the rule's own words among all that are left.
func next(all, left []Request, granted map[int64]int64) Request {
	return slices.MinFunc(left, func(a, b Request) int {
		if a.Priority != b.Priority {
			return b.Priority - a.Priority
		}
		aPatient, bPatient := now.Sub(a.Since) >= overdueAfter, now.Sub(b.Since) >= overdueAfter
		if aPatient != bPatient {
			if aPatient {
				return -1
			}
			return 1
		}
		if c := compareRatios(ratio(all, a.Project, granted[a.Project]), ratio(all, b.Project, granted[b.Project])); c != 0 && !aPatient {
			return c
		}
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return int(a.ID - b.ID)
	})
}

func TestOrderAgreesWithTheRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := drawQueue(t)
		left, granted := slices.Clone(requests), map[int64]int64{}
		ranked := Order(requests, now, overdueAfter)
		for i, r := range ranked {
			want := next(requests, left, granted)
			if r.Request != want {
				t.Fatalf("place %d: %+v, want %+v", i+1, r.Request, want)
			}
			if i > 0 {
				checkReason(t, requests, ranked[i-1], r, granted)
			}
			left = slices.DeleteFunc(left, func(o Request) bool { return o.ID == r.ID })
			granted[r.Project] += int64(r.Demand.GPUs) * r.Demand.Cores
		}
		if len(left) > 0 {
			t.Fatalf("%d requests have no place", len(left))
		}
	})
}

// checkReason compares a reason with what holds between the two, before the
// first of them was granted anything.
func checkReason(t *rapid.T, all []Request, before, r Ranked, granted map[int64]int64) {
	at := func(x Ranked) *big.Rat {
		g := granted[x.Project]
		if x.Project == before.Project {
			g -= int64(before.Demand.GPUs) * before.Demand.Cores
		}
		return ratio(all, x.Project, g)
	}
	want := Age
	switch {
	case before.Priority > r.Priority:
		want = Priority
	case now.Sub(r.Since) >= overdueAfter:
	case now.Sub(before.Since) >= overdueAfter:
		want = Overdue
	case compareRatios(at(before), at(r)) < 0:
		want = Fairness
	}
	if r.Behind != want {
		t.Fatalf("%d behind %d by %s, want %s", r.ID, before.ID, r.Behind, want)
	}
}

func TestOrderOfTheArgumentDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		requests := drawQueue(t)
		original := slices.Clone(requests)
		want := Order(requests, now, overdueAfter)
		if !slices.Equal(requests, original) {
			t.Fatal("the argument has changed")
		}
		shuffled := rapid.Permutation(requests).Draw(t, "permutation")
		if got := Order(shuffled, now, overdueAfter); !slices.Equal(got, want) {
			t.Fatalf("%s, want %s", say(got), say(want))
		}
	})
}

// With one request served a minute while the whole time younger ones of a
// project that holds nothing arrive, the last project is served all the same:
// as soon as it is patient only older ones go first.
func TestNobodyStarves(t *testing.T) {
	clock, served := now, -1
	waiting := []Request{ask(1, 1, 0, holds(1000))}
	for minute := range 60 {
		for i := range int64(2) {
			r := ask(10+2*int64(minute)+i, 100+2*int64(minute)+i, 0)
			r.Since = clock
			waiting = append(waiting, r)
		}
		first := Order(waiting, clock, overdueAfter)[0]
		if first.ID == 1 {
			served = minute
			break
		}
		waiting = slices.DeleteFunc(waiting, func(r Request) bool { return r.ID == first.ID })
		clock = clock.Add(time.Minute)
	}
	if served != 10 {
		t.Errorf("served after %d minutes, want 10", served)
	}
}

// Of two projects alike, neither is ever more than one request ahead.
func TestProjectsTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 10).Draw(t, "requests each")
		var requests []Request
		for i := range 2 * n {
			requests = append(requests, ask(int64(i+1), int64(i/n), rapid.IntRange(0, 9).Draw(t, "minutes")))
		}
		ahead := 0
		for _, r := range Order(requests, now, overdueAfter) {
			if r.Project == 0 {
				ahead++
			} else {
				ahead--
			}
			if ahead < -1 || ahead > 1 {
				t.Fatalf("%d ahead", ahead)
			}
		}
	})
}

func BenchmarkOrder(b *testing.B) {
	r := rand.New(rand.NewSource(1))
	requests := make([]Request, 10_000)
	for i := range requests {
		requests[i] = ask(int64(i+1), r.Int63n(500), r.Intn(15), holds(r.Int63n(1000)))
	}
	b.ReportAllocs()
	for b.Loop() {
		Order(requests, now, overdueAfter)
	}
}
