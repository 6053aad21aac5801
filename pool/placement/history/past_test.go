package history

import (
	"testing"
	"time"

	"weir/pool/placement"
)

func TestJobs(t *testing.T) {
	at := func(hour float64) *time.Time { when := start.Add(hoursOf(hour)); return &when }
	d := placement.Demand{GPUs: 1, Cores: 50}
	now := *at(20)
	for name, c := range map[string]struct {
		past    Past
		lasts   float64
		assumed int
	}{
		"over":              {Past{Requested: start, Started: at(1), Ended: at(4), Given: true}, 3, 0},
		"runs":              {Past{Requested: start, Started: at(18), Given: true}, 2, 0},
		"waits":             {Past{Requested: start}, 3, 1},
		"was given up":      {Past{Requested: start, Ended: at(9)}, 3, 1},
		"failed to start":   {Past{Requested: start, Ended: at(9), Given: true}, 0, 0},
		"ends before began": {Past{Requested: start, Started: at(9), Ended: at(8), Given: true}, 0, 0},
	} {
		c.past.Demand = d
		over := Past{Requested: start, Started: at(0), Ended: at(3), Given: true, Demand: d}
		jobs, assumed, span := Jobs([]Past{c.past, over, over, over}, now)
		want := Job{Arrived: start, Lasts: hoursOf(c.lasts), Demand: d}
		if len(jobs) != 4 || jobs[0] != want || assumed != c.assumed || span != 3*time.Hour {
			t.Errorf("%s: %+v, %d assumed to last %v", name, jobs, assumed, span)
		}
	}
	jobs, assumed, span := Jobs([]Past{{Requested: start}}, now)
	if len(jobs) != 1 || jobs[0].Lasts != time.Hour || assumed != 1 || span != time.Hour {
		t.Errorf("with nothing to tell from: %+v, %d assumed to last %v", jobs, assumed, span)
	}
	if _, _, span := Jobs([]Past{{Started: at(0), Ended: at(1)}, {Started: at(0), Ended: at(2)}}, now); span != 90*time.Minute {
		t.Errorf("the median of an even number is %v", span)
	}
}
