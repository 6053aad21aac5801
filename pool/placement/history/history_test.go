package history

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	"weir/pool/placement"
)

const (
	h100 = "NVIDIA H100 80GB HBM3"
	a100 = "NVIDIA A100-SXM4-40GB"
)

var start = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func hoursOf(n float64) time.Duration { return time.Duration(n * float64(time.Hour)) }

// job arrives at an hour, lasts for hours, and asks for GPUs with so many
// cores each.
func job(at, lasts float64, gpus int, cores int64) Job {
	return Job{Arrived: start.Add(hoursOf(at)), Lasts: hoursOf(lasts), Demand: placement.Demand{GPUs: gpus, Cores: cores, Project: 1}}
}

func asking(model string, j Job) Job { j.Demand.Model = model; return j }

// machines is so many machines with so many GPUs.
func machines(model string, count, gpus int) []placement.Node {
	return Machines{Model: model, MemoryMiB: 1000, GPUs: gpus, Count: count}.Nodes()
}

func TestReplay(t *testing.T) {
	wait := func(mean, median, p90, most float64) Waits {
		return Waits{Seconds(hoursOf(mean)), Seconds(hoursOf(median)), Seconds(hoursOf(p90)), Seconds(hoursOf(most))}
	}
	for name, c := range map[string]struct {
		nodes []placement.Node
		jobs  []Job
		want  Result // without Points
	}{
		"nothing": {nil, nil, Result{}},
		"no machine": {nil, []Job{job(0, 2, 1, 50)},
			Result{Jobs: 1, Refused: 1, From: start, To: start,
				Unmet: []Unmet{{GPUs: 1, Cores: 50, Refused: 1, RefusedCoreHours: 100}}}},
		"one after the other": {machines(h100, 1, 1), []Job{job(1, 2, 1, 100), job(0, 2, 1, 100), job(1, 1, 1, 100)},
			Result{Machines: 1, GPUs: 1, CapacityCores: 100, Jobs: 3, Placed: 3, Waited: 2, CoreHours: 500, Waits: wait(4./3, 1, 3, 3),
				From: start, To: start.Add(hoursOf(5)),
				Unmet: []Unmet{{GPUs: 1, Cores: 100, Waited: 2, WaitedCoreHours: 400, LongestWait: Seconds(hoursOf(3))}}}},
		"a small one goes ahead": {machines(h100, 1, 1), []Job{job(0, 4, 1, 60), job(1, 1, 1, 100), job(2, 1, 1, 40)},
			Result{Machines: 1, GPUs: 1, CapacityCores: 100, Jobs: 3, Placed: 3, Waited: 1, CoreHours: 380, Waits: wait(1, 0, 3, 3),
				From: start, To: start.Add(hoursOf(5)),
				Unmet: []Unmet{{GPUs: 1, Cores: 100, Waited: 1, WaitedCoreHours: 300, LongestWait: Seconds(hoursOf(3))}}}},
		"of two that wait the older": {machines(h100, 1, 1), []Job{job(0, 1, 1, 100), job(0.25, 1, 1, 60), job(0.5, 1, 1, 60)},
			Result{Machines: 1, GPUs: 1, CapacityCores: 100, Jobs: 3, Placed: 3, Waited: 2, CoreHours: 220, Waits: wait(0.75, 0.75, 1.5, 1.5),
				From: start, To: start.Add(hoursOf(3)),
				Unmet: []Unmet{{GPUs: 1, Cores: 60, Waited: 2, WaitedCoreHours: 135, LongestWait: Seconds(hoursOf(1.5))}}}},
		"refused": {machines(h100, 1, 2), []Job{job(0, 1, 3, 10), asking("b200", job(0, 2, 1, 50)), asking("B200", job(0, 2, 1, 50)), asking("h100", job(0, -1, 2, 100))},
			Result{Machines: 1, GPUs: 2, CapacityCores: 200, Jobs: 4, Placed: 1, Refused: 3, From: start, To: start,
				Unmet: []Unmet{{Model: "B200", GPUs: 1, Cores: 50, Refused: 1, RefusedCoreHours: 100},
					{Model: "b200", GPUs: 1, Cores: 50, Refused: 1, RefusedCoreHours: 100}, {GPUs: 3, Cores: 10, Refused: 1, RefusedCoreHours: 30}}}},
		"not even possible": {machines(h100, 1, 1), []Job{job(0, 1, -1, 50), job(0, 1, 1, 101)},
			Result{Machines: 1, GPUs: 1, CapacityCores: 100, Jobs: 2, Refused: 2, From: start, To: start,
				Unmet: []Unmet{{GPUs: 1, Cores: 101, Refused: 1, RefusedCoreHours: 101}, {GPUs: -1, Cores: 50, Refused: 1}}}},
	} {
		got := Replay(c.nodes, c.jobs, placement.Policy{})
		if got.Unmet == nil || got.Points == nil {
			t.Errorf("%s: JSON would say null", name)
		}
		got.Points = nil
		if len(got.Unmet) == 0 {
			got.Unmet = nil
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", name, got, c.want)
		}
	}
}

func TestNodesBeginEmpty(t *testing.T) {
	nodes := machines(h100, 1, 1)
	nodes[0].Devices[0].Shares = []placement.Share{{Cores: 100, Project: 9, Holder: 0}}
	got := Replay(nodes, []Job{job(0, 1, 1, 100)}, placement.Policy{})
	if got.Waited != 0 || got.Placed != 1 || len(nodes[0].Devices[0].Shares) != 1 {
		t.Errorf("got %+v, the argument %+v", got, nodes)
	}
}

func TestPoints(t *testing.T) {
	// 2.4 hours are 240 points of 36 s. The second job waits from 0.6 h on and
	// holds 50 cores from 1.2 h on; the last point but one of the first hour
	// and a fifth lies whole before that.
	points := Replay(machines(h100, 1, 1), []Job{job(0, 1.2, 1, 100), job(0.6, 1.2, 1, 50)}, placement.Policy{}).Points
	if len(points) != MaxPoints {
		t.Fatalf("%d points", len(points))
	}
	for i, want := range map[int]Point{
		0:   {start, 100, 100, 0},
		59:  {start.Add(59 * 36 * time.Second), 100, 100, 0},
		60:  {start.Add(60 * 36 * time.Second), 100, 100, 50},
		119: {start.Add(119 * 36 * time.Second), 100, 100, 50},
		120: {start.Add(120 * 36 * time.Second), 100, 50, 0},
		239: {start.Add(239 * 36 * time.Second), 100, 50, 0},
	} {
		if points[i] != want {
			t.Errorf("point %d: %+v, want %+v", i, points[i], want)
		}
	}
	// A job of half a span is half as high on average.
	points = Replay(machines(h100, 1, 1), []Job{job(0, 1./480, 1, 100), job(0.5, 0.5, 1, 100)}, placement.Policy{}).Points
	if got := points[0].InUse; math.Abs(got-50) > 0.001 {
		t.Errorf("in use %v on average", got)
	}
}

func TestCompare(t *testing.T) {
	jobs := []Job{job(0, 3, 1, 100), job(0, 3, 1, 100), asking("a100", job(1, 1, 2, 100))}
	now, then := Compare(machines(h100, 1, 1), append(machines(h100, 1, 1), machines(a100, 1, 2)...), jobs, placement.Policy{})
	if now.Waited != 1 || now.Refused != 1 || then.Waited != 0 || then.Refused != 0 || then.Machines != 3 || then.GPUs != 4 {
		t.Errorf("now %+v\nthen %+v", now, then)
	}
	if !now.To.Equal(start.Add(6*time.Hour)) || !then.To.Equal(now.To) || !then.Points[239].At.Equal(now.Points[239].At) {
		t.Errorf("now until %v, then until %v", now.To, then.To)
	}
}

func TestJSON(t *testing.T) {
	b, err := json.Marshal(Replay(machines(h100, 1, 1), []Job{job(0, 1, 1, 100), job(0.5, 1, 1, 100)}, placement.Policy{}))
	for _, want := range []string{`"median_seconds":0,`, `"max_seconds":1800}`, `"longest_wait_seconds":1800}`, `"from":"2026-05-04T12:00:00Z"`} {
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("no %s in %s, %v", want, b, err)
		}
	}
}
