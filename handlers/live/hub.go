package handlers

import (
	"context"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"time"

	"weir/models"
	"weir/policies"
)

const (
	keepAlive  = 8 * time.Second // from one beat of a stream to the next
	steps      = 32              // that a beat is spread over, so that not all streams have theirs at once
	hands      = 4               // that write or check at the same time
	maxTopics  = 64              // of a stream: as many as topicBits has
	maxViewers = 64              // streams of one user
)

// topicBits is a set of an audience's topics, by their place there.
type topicBits uint64

// topic is what somebody follows.
type topic struct {
	name      string
	frame     []byte                  // its newest event, encoded; nil before the first
	audiences map[*audience]topicBits // with the topic's own bit there
}

// audience are the streams that follow the same topics.
type audience struct {
	key       string   // the names, joined
	names     []string // sorted
	topics    []*topic // of those names
	followers map[*follower]bool
	changed   topicBits // that its viewers have not been sent
}

// follower is who follows an audience's topics, perhaps in several windows.
// What one may see is checked once for them all.
type follower struct {
	followerKey
	slot    int // the step of a beat that is its turn
	viewers map[*viewer]bool
}

type followerKey struct {
	audience    *audience
	user, epoch int64
	session     string
}

// tied tells whether the follower's rights hang on one of some ties; see
// [models.Carrier].
func (f *follower) tied(ties []string) bool {
	return slices.ContainsFunc(ties, func(tie string) bool {
		return tie == models.Tie("user", f.user) || tie == models.SessionTie(f.session) || slices.Contains(f.audience.names, tie)
	})
}

// actor is as much of the follower as is needed to ask for its rights.
func (f *follower) actor() policies.Actor {
	return policies.Actor{User: models.User{ID: f.user, SessionEpoch: f.epoch}, Session: f.session}
}

// hub tells event streams which topics have changed. What a topic's readers
// see is fetched by each with its own rights; the event itself is encoded
// once. A few goroutines serve all streams: one passes changes on, one has the
// beat, and both have hands.
type hub struct {
	check   func(context.Context, policies.Actor, []string) error // that one may follow topics
	holds   func() bool                                           // that anything may be sent now
	wake    chan struct{}
	stopped context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex // taken after a viewer's own, never before it
	closed    bool
	marks     marks
	topics    map[string]*topic
	audiences map[string]*audience
	followers map[followerKey]*follower
	changed   map[*audience]bool
	viewers   int
	open      map[int64]int // streams, by their user
	turn      int           // of the next follower
	encoded   int64         // events, so far
}

func newHub(check func(context.Context, policies.Actor, []string) error, holds func() bool) *hub {
	h := &hub{check: check, holds: holds, wake: make(chan struct{}, 1), marks: newMarks(), topics: map[string]*topic{}, audiences: map[string]*audience{},
		followers: map[followerKey]*follower{}, changed: map[*audience]bool{}, open: map[int64]int{}}
	h.stopped, h.stop = context.WithCancel(context.Background())
	return h
}

// run serves the streams until close; each tick is a step of the beat.
func (h *hub) run(ticks <-chan time.Time) {
	h.running.Go(func() {
		var list []delivery
		for {
			select {
			case <-h.stopped.Done():
				return
			case <-h.wake:
			}
			list = h.deliver(list)
		}
	})
	h.running.Go(func() {
		for step := 0; ; step = (step + 1) % steps {
			select {
			case <-h.stopped.Done():
				return
			case <-ticks:
			}
			h.beat(step)
		}
	})
}

// spread does something with each item, some at the same time.
func spread[T any](items []T, do func(T)) {
	var group sync.WaitGroup
	for part := range slices.Chunk(items, max(1, (len(items)+hands-1)/hands)) {
		group.Go(func() {
			for _, item := range part {
				do(item)
			}
		})
	}
	group.Wait()
}

// mark is where the changes stand; see [marks.now].
func (h *hub) mark() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.marks.now()
}

// publish notes that topics have changed, for their viewers to be told soon.
func (h *hub) publish(names []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(names, models.AnythingMayHaveChanged) {
		h.marks.forget()
		names = slices.Collect(maps.Keys(h.topics))
	}
	h.marks.add(names)
	for _, name := range names {
		t := h.topics[name]
		if t == nil {
			continue // nobody follows it
		}
		h.encode(t)
		for a, bit := range t.audiences {
			a.changed |= bit
			h.changed[a] = true
		}
	}
	if len(h.changed) > 0 {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

func (h *hub) encode(t *topic) {
	t.frame = []byte("event: change\ndata: " + t.name + "\n\n")
	h.encoded++
}

// delivery is what a viewer is to be sent: the same bytes as its whole
// audience.
type delivery struct {
	viewer *viewer
	*wave
}

type wave struct {
	bits  topicBits
	frame []byte
}

// deliver tells viewers what has changed. The list is where to note them; it
// comes back, to be used again.
func (h *hub) deliver(list []delivery) []delivery {
	list = h.due(list[:0])
	spread(list, func(d delivery) { h.keep(d.viewer, d.viewer.send(d.bits, d.frame, h.frame)) })
	clear(list)
	return list
}

// due takes what has changed since it was last asked; several changes of a
// topic are then one.
func (h *hub) due(list []delivery) []delivery {
	h.mu.Lock()
	defer h.mu.Unlock()
	for a := range h.changed {
		w := &wave{a.changed, h.join(a, a.changed)}
		for f := range a.followers {
			for v := range f.viewers {
				list = append(list, delivery{v, w})
			}
		}
		a.changed = 0
	}
	clear(h.changed)
	return list
}

// frame is join for those who do not hold the lock.
func (h *hub) frame(a *audience, set topicBits) []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.join(a, set)
}

// join puts the frames of topics together. A single one is not copied.
func (h *hub) join(a *audience, set topicBits) (all []byte) {
	for ; set != 0; set &= set - 1 {
		t := a.topics[bits.TrailingZeros64(uint64(set))]
		if t.frame == nil {
			h.encode(t)
		}
		if all == nil {
			all = slices.Clip(t.frame)
		} else {
			all = append(all, t.frame...)
		}
	}
	return all
}

// beat looks after the followers whose turn it is: may they still follow, and
// do they still read?
func (h *hub) beat(step int) {
	ctx, cancel := context.WithTimeout(h.stopped, keepAlive/2)
	defer cancel()
	spread(h.those(func(f *follower) bool { return f.slot == step }), func(f *follower) {
		refused := h.check(ctx, f.actor(), f.audience.names)
		for _, v := range h.viewersOf(f) {
			if refused != nil || v.beat(h.frame) != nil {
				h.drop(v)
			}
		}
	})
}

// those lists some of the followers.
func (h *hub) those(which func(*follower) bool) (list []*follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		if which(f) {
			list = append(list, f)
		}
	}
	return list
}

func (h *hub) viewersOf(f *follower) (list []*viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for v := range f.viewers {
		list = append(list, v)
	}
	return list
}

// keep drops a viewer with whom something went wrong.
func (h *hub) keep(v *viewer, err error) {
	if err != nil {
		h.drop(v)
	}
}
