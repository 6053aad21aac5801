package workspaces

import (
	"slices"
	"sync"
	"time"

	"weir/models"

	"weir/workspaces/runtime"
)

const (
	resyncPeriod  = time.Second           // between resyncs without any change
	minDelay      = 25 * time.Millisecond // between resyncs, and first delay of a workspace
	maxDelay      = 4 * time.Second       // of a workspace whose steps change nothing
	maxRetryDelay = 5 * time.Second       // after failed steps
	messageDelay  = 3 * time.Second       // before a message of the runtime is added to the history

	unobservedSteps = 4 // consecutive failed steps before another one is told: about ten seconds
)

// trackers are the trackers of all workspaces, or of all runs, by ID.
type trackers struct{ sync.Map }

func (t *trackers) entry(id int64) *tracker {
	one, _ := t.LoadOrStore(id, &tracker{})
	return one.(*tracker)
}

// retain deletes all other trackers.
func (t *trackers) retain(live map[int64]bool) {
	for id := range t.Range {
		if !live[id.(int64)] {
			t.Delete(id)
		}
	}
}

// tracker is the state of one workspace, run or part between its steps. It is only in memory:
// what is lost is repeated.
type tracker struct {
	mu        sync.Mutex
	failures  int             // consecutive failed steps
	retryAt   time.Time       // after a failed step
	idleSteps int             // consecutive steps without a change
	stages    []runtime.Stage // that the start has reached
	stageAt   time.Time       // when it reached the last of them
	blindAt   time.Time       // since when its progress cannot be seen; zero: it can
	message   string          // last message of the runtime
	messageAt time.Time       // when the runtime first reported it
	written   bool            // the message is in the history
	version   int64           // of the row at the last step
	steppedAt time.Time       // when the last step began
	renewed   time.Time       // the last renewal of the lease that was seen
	renewedAt time.Time       // when it was seen first
	lastSeen  time.Time       // when it was last seen to run, by the clock of the database
}

func (t *tracker) saw(at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastSeen = at
}

// endedAt is when what is tracked has ended, as its runtime says, but not before it began or was last
// seen to run, nor after now: it is charged until then, also if no server looked.
func (t *tracker) endedAt(said, began, now time.Time) time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lastSeen.After(began) {
		began = t.lastSeen
	}
	end := said.In(now.Location()).Truncate(time.Microsecond) // as databases store it
	switch {
	case said.IsZero() || end.After(now) || began.After(now):
		return now
	case end.Before(began): // by another clock
		return began
	}
	return end
}

// retryDelay returns the remaining delay after a failed step.
func (t *tracker) retryDelay(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.retryAt.Sub(now)
}

// stepFailed returns the delay before the next step.
func (t *tracker) stepFailed(now time.Time) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	delay := min(resyncPeriod<<min(t.failures, 3), maxRetryDelay)
	t.failures++
	t.retryAt = now.Add(delay)
	return delay
}

// failed is the number of consecutive failed steps.
func (t *tracker) failed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failures
}

func (t *tracker) stepChanged(state bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures, t.idleSteps, t.retryAt = 0, 0, time.Time{}
	if state {
		t.message, t.written, t.stages = "", false, nil
	}
}

// stepIdle returns the delay after a step without a change.
func (t *tracker) stepIdle() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failures, t.retryAt = 0, time.Time{}
	t.idleSteps++
	return min(minDelay<<min(t.idleSteps-1, 10), maxDelay)
}

// stepBegins records the version of the row.
func (t *tracker) stepBegins(version int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.version, t.steppedAt = version, time.Now()
}

// stepMissed reports whether a step is due that was not queued: the row has
// changed since the last step, or that step was too long ago.
func (t *tracker) stepMissed(version int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.version != version || time.Since(t.steppedAt) > maxRetryDelay+maxDelay
}

// blind records that the progress of a start cannot be seen: that time is not counted.
func (t *tracker) blind(now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.blindAt.IsZero() {
		t.blindAt = now
	}
}

// stalled reports whether a start has exceeded the timeout of its stage. A return
// to an earlier stage is no progress. A new leader begins the current stage
// again.
func (t *tracker) stalled(stage runtime.Stage, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.blindAt.IsZero() {
		t.stageAt, t.blindAt = t.stageAt.Add(now.Sub(t.blindAt)), time.Time{}
	}
	if !slices.Contains(t.stages, stage) {
		t.stages, t.stageAt = append(t.stages, stage), now
	}
	return now.Sub(t.stageAt) > stage.Timeout()
}

// expired reports whether a lease has expired whose last renewal is known. The time begins when that is first seen
// here, so that a server that was away gives everybody the time to renew.
func (t *tracker) expired(renewed time.Time, lease time.Duration, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.renewed.Equal(renewed) {
		t.renewed, t.renewedAt = renewed, now
	}
	return now.Sub(t.renewedAt) > lease
}

// messageDue reports whether a message of the runtime must be added to the
// history: it has been reported for messageDelay and is not there yet.
func (t *tracker) messageDue(message models.Text, now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if text := message.String(); text != t.message {
		t.message, t.messageAt, t.written = text, now, false
	}
	return t.message != "" && !t.written && now.Sub(t.messageAt) >= messageDelay
}

// changeDue is messageDue for a running workspace, whose first message, that it
// is running, is in the history already.
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
