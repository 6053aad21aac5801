package timeline

import (
	"time"

	"weir/pool/placement"
)

// End is when a holder is expected to leave. One that is due or overdue
// leaves at once, as far as a forecast can tell.
type End struct {
	Holder int64
	At     time.Time
	Known  bool // by a rule, such as a recall or the end of a period; else estimated
}

// Waiting is one request that waits.
type Waiting struct {
	Holder int64 // who will hold it; nobody else's number
	Demand placement.Demand
	Lasts  time.Duration // expected, from when it is placed; 0: it never leaves
	// Firm is from when it keeps room: no later request may then take a device
	// of a model that this one could take. Zero: they always may.
	Firm time.Time
}

// Outcome says what an estimate amounts to.
type Outcome int

const (
	// Unknown: it depends on an end that nobody can estimate.
	Unknown Outcome = iota
	// Placed: at Estimate.At.
	Placed
	// Never: not even the empty pool can.
	Never
	outcomeCount
)

var outcomeNames = [outcomeCount]string{"unknown", "placed", "never"}

// String is the outcome's stable name, for logs and programs.
func (o Outcome) String() string {
	if o < 0 || o >= outcomeCount {
		return "invalid"
	}
	return outcomeNames[o]
}

// Estimate is what can be said of one request that waits.
type Estimate struct {
	Holder  int64
	Outcome Outcome
	At      time.Time // the earliest, if Placed; not before now
	Known   bool      // if Placed: all ends that it waits for are known by a rule
	// After is the holders that must leave first; with any of them still there
	// it would not fit where it goes. Earlier requests of the queue can be
	// among them. Where nothing but an earlier request that keeps room is in
	// the way, it is that request's holder. It is empty for what can be placed
	// now, and for what waits for the pool itself to change.
	After []int64
}

// EstimateEach says for each request that waits, in the order of the queue, when
// it can be placed if holders leave as expected. Ends of who holds nothing
// do not matter; of a holder's several ends the last counts.
func EstimateEach(s placement.Snapshot, ends []End, waiting []Waiting, now time.Time, p placement.Policy) []Estimate {
	r := newRun(s, ends, waiting, now, p)
	if r.ends.Len() > 0 && r.ends[0].At.Equal(now) {
		r.leave()
	}
	r.serve()
	for r.open > 0 && r.ends.Len() > 0 {
		r.leave()
		r.serve()
	}
	for i := range r.waiting {
		if w := &r.waiting[i]; w.state == waits {
			w.estimate.After = r.missing(w)
		}
	}
	estimates := make([]Estimate, len(r.waiting))
	for i := range r.waiting {
		estimates[i] = r.waiting[i].estimate
	}
	return estimates
}
