package estimates

import (
	"time"

	"weir/pool/placement"
)

// End is when the shares of a holder are expected to end; an end in the past is
// now.
type End struct {
	Holder int64
	At     time.Time
	Known  bool // announced, such as a recall or the end of a period; else estimated
}

// Waiting is one queued request.
type Waiting struct {
	Holder int64 // unique
	Demand placement.Demand
	Lasts  time.Duration // expected, from when it is placed; 0: it never leaves
	// Firm is when its backfill reservation begins: later requests may not take
	// devices of a model that this one could take. Zero: never.
	Firm time.Time
}

// Outcome is the kind of an estimate.
type Outcome int

const (
	// Unknown: it depends on an end that cannot be estimated.
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

// Estimate is that of one queued request.
type Estimate struct {
	Holder  int64
	Outcome Outcome
	At      time.Time // the earliest, if Placed; not before now
	Known   bool      // if Placed: all ends that it waits for are known by a rule
	// After is the holders that must end first; with any of them still there
	// the request does not fit where it goes. Earlier queued requests can be
	// among them. Where only the reservation of an earlier request is in the
	// way, it is that request. It is empty for a request that can be placed
	// now, and for one that waits for the pool itself to change.
	After []int64
}
