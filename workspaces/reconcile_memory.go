package workspaces

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/workspaces/deployments/serving"
	"weir/workspaces/idleness"
)

// unmounted are the IDs of those whose mounts could not be changed, in this round of refreshes
// and the one before.
type unmounted struct{ before, now map[int64]bool }

func (u *unmounted) begin() { u.before, u.now = u.now, map[int64]bool{} }

// passes reports whether the result of a change of mounts, or the next one's, can be waited for:
// it succeeded, or failed for the first time. Otherwise access that was withdrawn would stay.
func (u *unmounted) passes(ctx context.Context, id int64, err error) bool {
	switch {
	case err == nil || ctx.Err() != nil || models.KindOf(err) == models.KindConflict:
		return true
	case errors.Is(err, errors.ErrUnsupported):
		return false
	}
	u.now[id] = true
	return !u.before[id]
}

// observed is what was last seen of a workspace.
type observed struct {
	observation *idleness.Observation // nil before the first one
	state       idleness.State        // which may not be stored yet
}

// requestsSeen is what was seen of the requests to a deployment.
type requestsSeen struct {
	begun int64     // how many the first part has begun
	last  time.Time // when one was computed or begun last, or the deployment was seen to serve first
}

// modelWatch is what was last seen of the files of a deployment's model.
type modelWatch struct {
	looking atomic.Bool // somebody does, and has the rest
	next    time.Time   // of the next look
	files   string
	since   time.Time // that they are like this
	waiting string    // why the update has to wait, as it was said, without its numbers
}

// lostGPU is what is known of a GPU that a deployment has lost, which serves or is loaded.
type lostGPU struct {
	missing bool      // or broken is only the GPU, of a machine that responds
	since   time.Time // it was seen to be lost first
	next    time.Time // of the next attempt to move the deployment
	waiting string    // why it cannot be moved, as it was said, without its numbers
}

// partsWriting is the writing of the parts of a deployment.
type partsWriting struct {
	done     chan error         // receives the result; nil while no attempt goes on
	cancel   context.CancelFunc // ends the attempt
	failures int
	next     time.Time   // of the next attempt
	changes  *modelWatch // of a model that has changed since it was planned; nil: it has not
}

// goesOn reports whether an attempt has not ended.
func (w *partsWriting) goesOn() bool { return w != nil && w.done != nil && len(w.done) == 0 }

// partWatch is what was last seen of the process of a part.
type partWatch struct {
	restarts int64     // of the part, so that each process has its own
	at       time.Time // of its last progress or, when it is loaded, of its last answer
	progress int64
	heard    bool // it has answered
	said     serving.Status
	counted  *countedTime // up to which its time is counted; nil: nothing is
	start    tracker
	cpu      time.Duration         // used by its processes so far; 0 also if it is not known
	looked   *idleness.Observation // of the first part: the last one of all parts
	ending   bool                  // it was stopped, and what it was needed for has ended
	stopped  models.Text           // why it was stopped; empty: it was not

	pausesUntil time.Time // that it is not started
}

// countedTime is what a part has said of its time at a moment.
type countedTime struct {
	at           time.Time
	active, busy int64
}

type partWatches map[int64]*partWatch

// of is the watch of the present process of a part.
func (w partWatches) of(p models.DeploymentPart) *partWatch {
	one := w[p.ID]
	if one == nil || one.restarts != p.Restarts {
		one = &partWatch{restarts: p.Restarts}
		w[p.ID] = one
	}
	return one
}
