package notebooks

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func minutes(m float64) time.Duration { return time.Duration(m * float64(time.Minute)) }

// Two sessions: a works for 10 minutes from 0 and for 10 from 60, b for 10 from 5.
var example = []Session{
	{"a", []Task{{0, 0, 1}, {0, minutes(10), 1}, {minutes(60), minutes(10), 1}, {minutes(120), 0, 1}}},
	{"b", []Task{{minutes(5), minutes(10), 1}, {minutes(90), 0, 1}}},
}

func TestPoliciesByHand(t *testing.T) {
	for _, c := range []struct {
		policy Policy
		gpus   int
		held   float64 // minutes
		waits  []float64
		most   int
	}{
		{Policy{Name: "reservation", Whole: true, Idle: Forever}, 2, 120 + 85, []float64{0, 0, 0}, 2},
		{Policy{Name: "reservation", Whole: true, Idle: Forever}, 1, 120 + 10, []float64{0, 0, 115}, 1},
		{Policy{Name: "batch", Start: minutes(1)}, 2, 11 + 11 + 11, []float64{1, 1, 1}, 2},
		{Policy{Name: "batch", Start: minutes(1)}, 1, 11 + 11 + 11, []float64{1, 1, 11 - 5 + 1}, 1},
		{Policy{Name: "cull", Whole: true, Idle: minutes(30), Start: minutes(1)}, 2, 40 + 41 + 41, []float64{0, 1, 1}, 2},
		{Policy{Name: "weir", Idle: minutes(2)}, 2, 12 + 12 + 12, []float64{0, 0, 0}, 2},
		{Policy{Name: "weir", Idle: minutes(2)}, 1, 12 + 12 + 12, []float64{0, 0, 12 - 5}, 1},
	} {
		t.Run(fmt.Sprint(c.policy.Name, c.gpus), func(t *testing.T) {
			got := Simulate(example, c.gpus, c.policy)
			slices.Sort(c.waits)
			if math.Abs(got.Held*60-c.held) > 1e-6 || math.Abs(got.Computed*60-30) > 1e-6 || got.Most != c.most || got.Tasks != 3 {
				t.Errorf("%+v, want %v minutes held and %d at most", got, c.held, c.most)
			}
			if got.Wait50 != minutes(c.waits[1]) || got.Wait99 != minutes(c.waits[2]) {
				t.Errorf("waits %s and %s, want %v", got.Wait50, got.Wait99, c.waits)
			}
		})
	}
}

// What must hold of any trace and policy.
func TestSimulationsAreSound(t *testing.T) {
	for seed := range uint64(20) {
		trace := Synthetic(100, seed)
		computed, tasks := 0.0, 0
		for _, s := range trace {
			for _, task := range s.Tasks {
				computed += task.Duration.Hours() * float64(task.GPUs)
				if task.Duration > 0 {
					tasks++
				}
			}
		}
		for _, gpus := range []int{8, 20, 1000} {
			for _, p := range Policies(30*time.Second, 150*time.Millisecond, time.Minute) {
				r := Simulate(trace, gpus, p)
				if r.LeftOut > 0 || r.Tasks != tasks || math.Abs(r.Computed-computed) > 1e-6 {
					t.Fatalf("%s on %d GPUs: %+v, want %d tasks and %v GPU-hours", p.Name, gpus, r, tasks, computed)
				}
				if r.Held < r.Computed || r.Most > gpus || r.Wait50 > r.Wait99 || r.AtOnce < 0 || r.AtOnce > 1 {
					t.Fatalf("%s on %d GPUs: %+v", p.Name, gpus, r)
				}
				if gpus == 1000 && r.Wait99 > p.Start {
					t.Fatalf("%s: a task waits for %s in an empty pool", p.Name, r.Wait99)
				}
			}
		}
	}
}

// The synthetic trace has the figures that it is made from.
func TestSyntheticTrace(t *testing.T) {
	trace := Synthetic(4000, 1)
	var durations []time.Duration
	unused := 0
	for _, s := range trace {
		if len(s.Tasks) == 2 {
			unused++
		}
		for _, task := range s.Tasks {
			if task.Duration > 0 {
				durations = append(durations, task.Duration)
			}
		}
	}
	slices.Sort(durations)
	half, quarter := durations[len(durations)/2], durations[len(durations)*3/4]
	r := Simulate(trace, 1<<20, Policies(0, 0, 0)[0])
	idle := 1 - r.Computed/r.Held
	if math.Abs(half.Minutes()-2) > 0.1 || math.Abs(quarter.Minutes()-5) > 0.25 || math.Abs(idle-0.81) > 0.03 || math.Abs(float64(unused)/4000-0.7) > 0.04 {
		t.Errorf("half of the tasks take %s, three quarters %s; GPUs are idle for %.2f of the time; %d of 4000 sessions never use them", half, quarter, idle, unused)
	}
}

func TestReadTrace(t *testing.T) {
	trace, err := Read(strings.NewReader("gpus,session,duration_s,submit_s\n1,x,2.5,10\n2,y,1,0\n4,x,0,3\n"), "")
	want := "[{x [{3s 0s 4} {10s 2.5s 1}]} {y [{0s 1s 2}]}]"
	if got := fmt.Sprint(trace); err != nil || got != want {
		t.Errorf("%s, %v, want %s", got, err, want)
	}
	for text, wrong := range map[string]string{
		"":                                    "no header",
		"session,submit_s,gpus\n":             "the header has no column duration_s",
		"session,submit_s,duration_s,gpus\n":  "the trace has no tasks",
		"session,submit_s,duration_s,gpus\nx": "record on line 2: wrong number of fields",
		"session,submit_s,duration_s,gpus\nx,-1,1,1\n":       "line 2",
		"session,submit_s,duration_s,gpus\nx,1,NaN,1\n":      "line 2",
		"session,submit_s,duration_s,gpus\nx,1,1e300,1\n":    "line 2",
		"session,submit_s,duration_s,gpus\n\nx,1,1,half\n":   "line 3",
		"session,submit_s,duration_s,gpus\nx,1,1,99999999\n": "line 2",
	} {
		if _, err := Read(strings.NewReader(text), "a.csv"); err == nil || !strings.Contains(err.Error(), "a.csv: "+wrong) {
			t.Errorf("%q: %v, want %q", text, err, wrong)
		}
	}
}
