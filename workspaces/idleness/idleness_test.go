package idleness_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"weir/workspaces/idleness"
)

var start = time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)

func minutes(n int) time.Duration { return time.Duration(n) * time.Minute }

func TestWork(t *testing.T) {
	now := start.Add(15 * time.Second)
	before := &idleness.Observation{At: start, CPU: time.Hour, IOBytes: 5 << 30}
	quiet := func(change func(*idleness.Observation)) idleness.Observation {
		o := *before
		o.At = now
		change(&o)
		return o
	}
	tests := []struct {
		name   string
		before *idleness.Observation
		now    idleness.Observation
		at     time.Time
		signal idleness.Signal
	}{
		{"nothing", before, quiet(func(*idleness.Observation) {}), time.Time{}, ""},
		{"a busy kernel", before, quiet(func(o *idleness.Observation) { o.Busy = true }), now, idleness.Code},
		{"a short cell between two looks", before, quiet(func(o *idleness.Observation) { o.Executed = new(7 * time.Second) }), now.Add(-7 * time.Second), idleness.Code},
		{"an hour ago", nil, quiet(func(o *idleness.Observation) { o.Executed = new(time.Hour) }), now.Add(-time.Hour), idleness.Code},
		{"a negative age", before, quiet(func(o *idleness.Observation) { o.Executed = new(-time.Hour) }), now, idleness.Code},
		{"typing after a cell", before, quiet(func(o *idleness.Observation) { o.Executed, o.Typed = new(time.Minute), new(time.Second) }), now.Add(-time.Second), idleness.Terminal},
		{"a cell after typing", before, quiet(func(o *idleness.Observation) { o.Executed, o.Typed = new(time.Second), new(time.Minute) }), now.Add(-time.Second), idleness.Code},
		{"a waiting kernel's own CPU", before, quiet(func(o *idleness.Observation) { o.CPU += 75 * time.Millisecond }), time.Time{}, ""},
		{"a computing process", before, quiet(func(o *idleness.Observation) { o.CPU += time.Second }), now, idleness.Processes},
		{"a cell that computed", before, quiet(func(o *idleness.Observation) { o.CPU += time.Second; o.Executed = new(5 * time.Second) }), now, idleness.Code},
		{"a process after a cell", before, quiet(func(o *idleness.Observation) { o.CPU += time.Second; o.Executed = new(time.Minute) }), now, idleness.Processes},
		{"a slow download", before, quiet(func(o *idleness.Observation) { o.IOBytes += 2 << 20 }), now, idleness.Processes},
		{"a clock on a screen", before, quiet(func(o *idleness.Observation) { o.IOBytes += 30 << 10 }), time.Time{}, ""},
		{"the first look", nil, quiet(func(o *idleness.Observation) { o.CPU += time.Hour }), time.Time{}, ""},
		{"other processes", before, quiet(func(o *idleness.Observation) { o.CPU, o.IOBytes = 0, 0 }), time.Time{}, ""},
		{"the clock was set back", &idleness.Observation{At: now.Add(time.Hour)}, quiet(func(*idleness.Observation) {}), time.Time{}, ""},
		{"a run", before, quiet(func(o *idleness.Observation) { o.Ran = new(time.Duration(0)) }), now, idleness.Run},
		{"a kernel's run that rests", before, quiet(func(o *idleness.Observation) { o.Ran, o.Typed = new(time.Minute), new(time.Hour) }), now.Add(-time.Minute), idleness.Run},
		{"a GPU", before, quiet(func(o *idleness.Observation) { o.GPU = 1 }), now, idleness.GPU},
	}
	for _, tt := range tests {
		if at, signal := idleness.Work(tt.before, tt.now); !at.Equal(tt.at) || signal != tt.signal {
			t.Errorf("%s: %q at %v, want %q at %v", tt.name, signal, at, tt.signal, tt.at)
		}
	}
}

func TestNext(t *testing.T) {
	hour := idleness.Limit(time.Hour)
	tests := []struct {
		name     string
		limit    idleness.Limit
		worked   int // minutes
		reminded *time.Duration
		now      int
		action   idleness.Action
		stop     time.Duration // after start; negative: never
	}{
		{"no limit", 0, 0, nil, 100_000, idleness.Nothing, -1},
		{"the limit was removed", 0, 0, new(minutes(50)), 51, idleness.Clear, -1},
		{"at work", hour, 0, nil, 49, idleness.Nothing, time.Hour},
		{"due for a reminder", hour, 0, nil, 50, idleness.Remind, time.Hour},
		{"reminded", hour, 0, new(minutes(50)), 59, idleness.Nothing, time.Hour},
		{"due", hour, 0, new(minutes(50)), 60, idleness.Stop, time.Hour},
		{"worked again", hour, 55, new(minutes(50)), 56, idleness.Clear, minutes(115)},
		{"nobody looked for a day", hour, 0, nil, 1440, idleness.Remind, minutes(1450)},
		{"reminded late", hour, 0, new(minutes(1440)), 1449, idleness.Nothing, minutes(1450)},
		{"a limit shorter than the grace period", idleness.Limit(minutes(2)), 0, nil, 1, idleness.Remind, minutes(2)},
	}
	for _, tt := range tests {
		var reminded *time.Time
		if tt.reminded != nil {
			reminded = new(start.Add(*tt.reminded))
		}
		want := time.Time{}
		if tt.stop >= 0 {
			want = start.Add(tt.stop)
		}
		state := idleness.State{WorkedAt: start.Add(minutes(tt.worked)), RemindedAt: reminded}
		if action, stop := tt.limit.Next(state, start.Add(minutes(tt.now))); action != tt.action || !stop.Equal(want) {
			t.Errorf("%s: %v, stop at %v; want %v, %v", tt.name, action, stop, tt.action, want)
		}
	}
}

// Over random lives of a workspace that is looked at irregularly: it is never stopped
// within its limit after work, nor without a reminder that stood for the grace period. When
// it is looked at regularly and nothing works, it is stopped in time, also after the
// clock was set.
func TestLives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := idleness.Limit(minutes(rapid.IntRange(2, 300).Draw(t, "limit")))
		grace := min(10*time.Minute, time.Duration(limit)/2)
		passed, clock := time.Duration(0), start // real time, and what the clock shows
		state := idleness.State{WorkedAt: clock}
		var workedAt, remindedAt time.Duration // in real time
		var before *idleness.Observation
		jumped := false
		look := func(busy bool) idleness.Action {
			o := idleness.Observation{At: clock, Busy: busy}
			state, before = state.Observe(before, o), &o
			if busy {
				workedAt = passed
			}
			action, stop := limit.Next(state, clock)
			switch action {
			case idleness.Remind:
				state.RemindedAt, remindedAt = new(clock), passed
			case idleness.Clear:
				state.RemindedAt = nil
			}
			if next, after := limit.Next(state, clock); action == idleness.Remind && (next != idleness.Nothing || !after.Equal(stop)) {
				t.Fatalf("a reminder of a stop at %v is followed by %v at %v", stop, next, after)
			}
			return action
		}
		advance := func(step time.Duration) { passed, clock = passed+step, clock.Add(step) }
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			advance(time.Duration(rapid.IntRange(1, 3600).Draw(t, "seconds")) * time.Second)
			if rapid.IntRange(0, 20).Draw(t, "jump") == 0 {
				clock = clock.Add(time.Duration(rapid.IntRange(-100, 100).Draw(t, "hours")) * time.Hour)
				jumped = true
			}
			if look(rapid.IntRange(0, 3).Draw(t, "busy") == 0) != idleness.Stop {
				continue
			}
			if early := passed - remindedAt; early < grace && !jumped {
				t.Fatalf("stopped %v after the reminder, grace %v", early, grace)
			}
			if early := passed - workedAt; early < time.Duration(limit) && !jumped {
				t.Fatalf("stopped %v after work, limit %v", early, limit)
			}
			return
		}
		if jumped {
			look(true)
		}
		for range int((time.Duration(limit)+grace)/time.Minute) + 3 {
			if look(false) == idleness.Stop {
				return
			}
			advance(time.Minute)
		}
		t.Fatal("never stopped")
	})
}
