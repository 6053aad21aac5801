package history

import (
	"time"

	"weir/pool/placement"
)

// Job is one request of the past.
type Job struct {
	Arrived time.Time
	// Lasts is how long it holds what it gets; of one that still runs, until
	// now. Less than nothing counts as nothing.
	Lasts  time.Duration
	Demand placement.Demand
}

// Replay lets jobs arrive, in any order given, at nodes that are empty.
func Replay(nodes []placement.Node, jobs []Job, p placement.Policy) Result {
	r := simulate(nodes, jobs, p)
	return r.result(r.end())
}

// Compare replays jobs on nodes, and on these together with extra ones. The
// points of both stand at the same times.
func Compare(nodes, extra []placement.Node, jobs []Job, p placement.Policy) (now, then Result) {
	without, with := simulate(nodes, jobs, p), simulate(Join(nodes, extra), jobs, p)
	end := max(without.end(), with.end())
	return without.result(end), with.result(end)
}
