package timeline

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawStanding(t *rapid.T, name string) Standing {
	part := func(what string) float64 { return rapid.Float64Range(0, 1).Draw(t, name+" "+what) }
	return Standing{Class: part("class"), QoS: part("QoS"), Task: part("task"), Client: part("client"), Use: part("use"), Share: part("share"), AllUse: 2 * part("all"),
		Waiting: time.Duration(rapid.Int64Range(0, int64(3*FullWait)).Draw(t, name+" waiting"))}
}

func TestScoreIsBoundedAndGrows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := Weights{Class: rapid.Float64Range(0, 9).Draw(t, "class"), QoS: 1, FairShare: rapid.Float64Range(0, 9).Draw(t, "fair")}
		s := drawStanding(t, "request")
		score := w.Score(s)
		if score < 0 || score > 1 || math.IsNaN(score) {
			t.Fatalf("score %v", score)
		}
		for name, better := range map[string]Standing{
			"class":     {Class: min(s.Class+0.1, 1), QoS: s.QoS, Task: s.Task, Client: s.Client, Use: s.Use, Share: s.Share, AllUse: s.AllUse, Waiting: s.Waiting},
			"less used": {Class: s.Class, QoS: s.QoS, Task: s.Task, Client: s.Client, Use: s.Use / 2, Share: s.Share, AllUse: s.AllUse, Waiting: s.Waiting},
			"waiting":   {Class: s.Class, QoS: s.QoS, Task: s.Task, Client: s.Client, Use: s.Use, Share: s.Share, AllUse: s.AllUse, Waiting: s.Waiting + time.Hour},
		} {
			if w.Score(better) < score {
				t.Fatalf("%s: %v of %+v is below %v of %+v", name, w.Score(better), better, score, s)
			}
		}
		newer := drawStanding(t, "newer")
		s.Waiting = FullWait + newer.Waiting
		if w.Score(newer) > w.Score(s) {
			t.Fatalf("%+v comes before %+v, which has waited long", newer, s)
		}
	})
}

// Under a flood of the highest priority that takes all that becomes free, a request of the
// lowest is granted as soon as it has waited for FullWait and what then runs has ended.
func TestNothingStarves(t *testing.T) {
	const hour = 3600 * second
	c := NewCalendar([]Device{{ID: 1, Node: 1, Capacity: Amount{100, 100}}})
	high := Standing{Class: 1, QoS: 1, Task: 1, Client: 1, Share: 1}
	type waiting struct {
		Request
		Standing
		since int64
	}
	var queue []waiting
	next := int64(1)
	ask := func(s Standing, now int64) {
		queue = append(queue, waiting{Request{ID: next, Demand: Demand{GPUs: 1, Each: Amount{100, 100}, Duration: 2 * hour}}, s, now})
		next++
	}
	low := next
	for now := int64(0); now < 40*hour; now += hour {
		if now == 0 {
			ask(Standing{Use: 1, AllUse: 1, Share: 0.01}, now)
		}
		ask(high, now)
		ask(high, now)
		var batch []Request
		for _, w := range queue {
			w.Standing.Waiting = time.Duration(now-w.since) * time.Microsecond
			w.Request.Score = DefaultWeights.Score(w.Standing)
			w.Request.Demand.Window = Span{now, now + 2*hour}
			batch = append(batch, w.Request)
		}
		for _, x := range c.decideAll(batch) {
			if x.Outcome != Granted {
				continue
			}
			if x.Request == low {
				if waited := time.Duration(now) * time.Microsecond; waited > FullWait+2*time.Hour || waited < 10*time.Hour {
					t.Errorf("it waited for %s", waited)
				}
				return
			}
			for i := range queue {
				if queue[i].ID == x.Request {
					queue = append(queue[:i], queue[i+1:]...)
					break
				}
			}
		}
	}
	t.Error("it was never granted")
}

func TestUseDecaysByHalves(t *testing.T) {
	for after, want := range map[time.Duration]float64{-time.Hour: 8, 0: 8, 7 * 24 * time.Hour: 4, 21 * 24 * time.Hour: 1} {
		if got := Decay(8, after, 7*24*time.Hour); math.Abs(got-want) > 1e-9 {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
}
