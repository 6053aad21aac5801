package idleness

import "time"

// Signal is what showed that a workspace works.
type Signal string

const (
	Code      Signal = "code"      // a kernel executes, or has executed
	Terminal  Signal = "terminal"  // somebody typed
	Processes Signal = "processes" // they compute, read or write
	GPU       Signal = "gpu"       // it computes
	Run       Signal = "run"       // in its environment, which works
	Kept      Signal = "kept"      // a person asked to keep it
)

// Observation is what a workspace shows at one moment.
type Observation struct {
	At       time.Time
	Busy     bool           // a kernel executes
	Executed *time.Duration // since a kernel last executed; nil: never
	Typed    *time.Duration // since somebody last typed in a terminal; nil: never
	Ran      *time.Duration // since a run of the workspace last worked; nil: none runs
	CPU      time.Duration  // used by all processes but the server's own, since their start
	IOBytes  int64          // read and written by them
	GPU      int64          // utilisation of its GPUs, percent; 0 also if it is not known

	MemoryBytes int64 // used by all processes, -1: unknown; not a sign of work

	Kernels, BusyKernels int64 // that run, and that execute
}

// Processes that use less than this, on average between two observations, wait. A
// Python kernel that waits used 0.01 s of CPU in a minute, and read and wrote nothing.
const (
	workingCPU     = 0.05      // of one CPU
	workingIOBytes = 100 << 10 // per second
)

// Work returns when a workspace last worked and what showed it, as far as two
// successive observations tell; before is nil for the first one. The time is zero
// if they show no work.
func Work(before *Observation, now Observation) (at time.Time, signal Signal) {
	switch {
	case now.Busy:
		return now.At, Code
	case now.GPU > 0:
		return now.At, GPU
	}
	for _, s := range []struct {
		since  *time.Duration
		signal Signal
	}{{now.Executed, Code}, {now.Typed, Terminal}, {now.Ran, Run}} {
		if s.since == nil {
			continue
		}
		if t := now.At.Add(-max(*s.since, 0)); at.IsZero() || t.After(at) {
			at, signal = t, s.signal
		}
	}
	if before != nil && compute(*before, now) {
		if at.Before(before.At) { // not what a person has just done, which also computes
			signal = Processes
		}
		at = now.At
	}
	return at, signal
}

// compute reports whether processes worked between two observations. Totals that
// shrink are of other processes and tell nothing.
func compute(before, now Observation) bool {
	seconds := now.At.Sub(before.At).Seconds()
	if seconds <= 0 {
		return false
	}
	return (now.CPU-before.CPU).Seconds()/seconds >= workingCPU || float64(now.IOBytes-before.IOBytes)/seconds >= workingIOBytes
}

// State is what is remembered of a workspace.
type State struct {
	WorkedAt   time.Time // when it last worked
	Signal     Signal    // what showed it; empty: its start
	RemindedAt *time.Time
}

// Observe returns the state after another observation. Times from before the clock
// was set back become the present.
func (s State) Observe(before *Observation, now Observation) State {
	s.WorkedAt = earlier(s.WorkedAt, now.At)
	if s.RemindedAt != nil {
		s.RemindedAt = new(earlier(*s.RemindedAt, now.At))
	}
	if at, signal := Work(before, now); at.After(s.WorkedAt) {
		s.WorkedAt, s.Signal = at, signal
	}
	return s
}

// maxGrace is the time between a reminder and the stop, unless the limit is short.
const maxGrace = 10 * time.Minute

// Limit is for how long a workspace may be idle; 0: forever.
type Limit time.Duration

// grace is the time between the reminder and the stop.
func (l Limit) grace() time.Duration { return min(maxGrace, time.Duration(l)/2) }

// Action is what is due for an idle workspace.
type Action int

// Actions. [Clear] ends a reminder, because the workspace has worked since.
const (
	Nothing Action = iota
	Remind
	Clear
	Stop
)

// Next returns what is due now, and when the workspace is stopped if nothing works
// until then; zero: never. It is never stopped without a reminder that stood for the
// whole grace period, however long nobody looked at it.
func (l Limit) Next(s State, now time.Time) (Action, time.Time) {
	switch {
	case l <= 0 && s.RemindedAt == nil:
		return Nothing, time.Time{}
	case l <= 0:
		return Clear, time.Time{}
	}
	stop := s.WorkedAt.Add(time.Duration(l))
	switch {
	case s.RemindedAt == nil && now.Before(stop.Add(-l.grace())):
		return Nothing, stop
	case s.RemindedAt == nil:
		return Remind, later(stop, now.Add(l.grace()))
	case s.WorkedAt.After(*s.RemindedAt):
		return Clear, stop
	}
	stop = later(stop, s.RemindedAt.Add(l.grace()))
	if now.Before(stop) {
		return Nothing, stop
	}
	return Stop, stop
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
