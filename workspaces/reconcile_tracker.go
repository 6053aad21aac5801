package workspaces

import (
	"maps"
	"slices"
	"sync"
	"time"

	"weir/models"
)

const (
	resyncPeriod  = time.Second           // between rounds when nothing has happened
	minDelay      = 25 * time.Millisecond // pause between rounds, and first pause of a workspace
	maxDelay      = 4 * time.Second       // pause of a workspace whose steps change nothing
	maxRetryDelay = 5 * time.Second       // pause after steps that failed
	messageDelay  = 3 * time.Second       // before the member reads a message of the runtime
)

// trackers hold what is kept of workspaces between their steps, in memory
// only: what is lost is repeated.
type trackers struct {
	mu  sync.Mutex
	all map[int64]*tracker
}

func (t *trackers) entry(workspace int64) *tracker {
	t.mu.Lock()
	defer t.mu.Unlock()
	one := t.all[workspace]
	if one == nil {
		one = &tracker{}
		t.all[workspace] = one
	}
	return one
}

func (t *trackers) drop(workspace int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, workspace)
}

func (t *trackers) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.all)
}

// retain forgets all workspaces but those.
func (t *trackers) retain(live map[int64]bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	maps.DeleteFunc(t.all, func(id int64, _ *tracker) bool { return !live[id] })
}

// tracker is what is kept of one workspace.
type tracker struct {
	mu        sync.Mutex
	failures  int       // steps that failed, one after the other
	retryAt   time.Time // after such a step
	idleSteps int       // steps in which nothing happened, one after the other
	stages    []Stage   // reached by the start
	stageAt   time.Time // when it reached the last of them
	message   string    // that the runtime gave last
	messageAt time.Time // when it first gave it
	written   bool      // the member can read it
	version   int64     // of the row at the last step
	steppedAt time.Time // when that was
}

// retryDelay is how long a workspace still waits after a step that failed.
func (t *tracker) retryDelay(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return min(t.retryAt.Sub(now), maxRetryDelay) // the clock may be set back
}

func (t *tracker) stepFailed(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	pause := min(resyncPeriod<<min(t.failures, 3), maxRetryDelay)
	t.failures++
	t.retryAt = now.Add(pause)
	return pause
}

func (t *tracker) stepChanged(toAnotherState bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures, t.idleSteps, t.retryAt = 0, 0, time.Time{}
	if toAnotherState {
		t.message, t.written, t.stages = "", false, nil
	}
}

// stepIdle is the pause after a step in which nothing happened.
func (t *tracker) stepIdle() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures, t.retryAt = 0, time.Time{}
	t.idleSteps++
	return min(minDelay<<min(t.idleSteps-1, 10), maxDelay)
}

// stepBegins notes that a step begins, at a version of the row.
func (t *tracker) stepBegins(version int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version, t.steppedAt = version, time.Now()
}

// stepMissed reports whether a step is due that was not queued: the row has
// changed since the last one, or that is too long ago.
func (t *tracker) stepMissed(version int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version != version || time.Since(t.steppedAt) > maxRetryDelay+maxDelay
}

// stalled reports whether a start has stayed too long in a stage. One that
// comes back to an earlier stage has made no progress. After a change of the
// leader the present stage begins anew.
func (t *tracker) stalled(stage Stage, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.stages, stage) {
		t.stages, t.stageAt = append(t.stages, stage), now
	}
	return now.Sub(t.stageAt) > stage.timeout()
}

// messageDue reports whether the runtime has given a message for so long that
// the member should read it, and it is not in the history yet.
func (t *tracker) messageDue(message models.Text, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := message.String(); text != t.message {
		t.message, t.messageAt, t.written = text, now, false
	}
	return t.message != "" && !t.written && now.Sub(t.messageAt) >= messageDelay
}

// changeDue is messageDue for a workspace that runs: its first message says
// that it does, and is in the history already.
func (t *tracker) changeDue(message models.Text, now time.Time) bool {
	t.mu.Lock()
	if t.message == "" {
		t.message, t.written = message.String(), true
	}
	t.mu.Unlock()
	return t.messageDue(message, now)
}

func (t *tracker) messageWritten() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.written = true
}
