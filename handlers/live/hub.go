package live

import (
	"context"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"weir/models/store"
	"weir/policies"
)

const (
	steps = 32 // that a beat is spread over, so that not all streams have theirs at once
	hands = 4  // concurrent permission checks
	// MaxTopics is how many a stream may follow.
	MaxTopics = 64
	// MaxStreams is how many one user may have.
	MaxStreams = 64
)

// Hub sends the topics that have changed to event streams. Each event is encoded once.
type Hub struct {
	check   func(context.Context, policies.Actor, []string) error // that one may follow topics
	holds   func() bool                                           // that anything may be sent now
	wake    chan struct{}
	stopped context.Context
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	closed    bool
	marks     changeLog
	departed  departures
	topics    map[string]map[*Stream]bool // streams by topic
	followers map[followerKey]*follower
	changed   map[string]bool // topics since the last delivery
	open      int             // streams
	openOf    map[int64]int   // by their user
	turn      int             // slot of the next follower
	encoded   int64           // events, so far
}

// New returns a Hub. A stream continues while check permits its topics; bytes are sent
// only while holds returns true.
func New(check func(context.Context, policies.Actor, []string) error, holds func() bool) *Hub {
	h := &Hub{check: check, holds: holds, wake: make(chan struct{}, 1), marks: newChangeLog(), topics: map[string]map[*Stream]bool{},
		followers: map[followerKey]*follower{}, changed: map[string]bool{}, openOf: map[int64]int{}}
	h.stopped, h.stop = context.WithCancel(context.Background())
	h.running.Go(func() {
		for {
			select {
			case <-h.stopped.Done():
				return
			case <-h.wake:
				h.deliver()
			}
		}
	})
	h.running.Go(func() {
		ticks := time.NewTicker(keepAlive / steps)
		defer ticks.Stop()
		for step := 0; ; step = (step + 1) % steps {
			select {
			case <-h.stopped.Done():
				return
			case <-ticks.C:
				h.endDeparted()
				h.sendKeepAlives(step)
			}
		}
	})
	return h
}

// Cursor is the current position in the changes. Data that is read afterwards is at least
// as new.
func (h *Hub) Cursor() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.marks.cursor()
}

// Publish marks topics as changed and schedules their delivery.
func (h *Hub) Publish(topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if slices.Contains(topics, store.AllTopics) {
		h.marks.invalidate()
		topics = slices.Collect(maps.Keys(h.topics))
	}
	h.marks.add(topics)
	for _, topic := range topics {
		if h.topics[topic] != nil {
			h.changed[topic] = true
		}
	}
	if len(h.changed) > 0 {
		select {
		case h.wake <- struct{}{}:
		default:
		}
	}
}

// deliver sends an event for each topic that has changed; several changes of a topic
// become one event.
func (h *Hub) deliver() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range slices.Sorted(maps.Keys(h.changed)) {
		streams := h.topics[topic]
		if streams == nil {
			continue // they have left
		}
		event := eventOf(topic, len(streams))
		h.encoded++
		for s := range streams {
			h.offer(s, event)
		}
	}
	clear(h.changed)
}

// sendKeepAlives checks the permissions of the followers in a slot and sends a keep-alive to the
// permitted.
func (h *Hub) sendKeepAlives(step int) {
	ctx, cancel := context.WithTimeout(h.stopped, keepAlive/2)
	defer cancel()
	h.recheck(ctx, func(f *follower) bool { return f.slot == step })
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		if f.slot == step {
			for s := range f.streams {
				h.offer(s, alive)
			}
		}
	}
}

// recheck ends the streams of those followers that may not follow any more.
func (h *Hub) recheck(ctx context.Context, which func(*follower) bool) {
	var group sync.WaitGroup
	list := h.followersWhere(which)
	for part := range slices.Chunk(list, max(1, (len(list)+hands-1)/hands)) {
		group.Go(func() {
			for _, f := range part {
				if h.check(ctx, f.actor(), f.topics) != nil {
					h.endWhere(func(other *follower) bool { return other == f })
				}
			}
		})
	}
	group.Wait()
}

// Subscribe begins a stream for a page that was read at the mark since; it
// must be served or dropped. It is nil when the actor has MaxStreams already.
func (h *Hub) Subscribe(actor policies.Actor, topics []string, since string) *Stream {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return &Stream{ended: true}
	}
	if h.openOf[actor.User.ID] >= MaxStreams {
		h.endDepartedLocked()
	}
	if h.openOf[actor.User.ID] >= MaxStreams {
		return nil
	}
	f := h.follower(actor, topics)
	s, first := &Stream{follower: f}, greeting
	f.streams[s] = true
	changed := h.marks.after(since)
	for _, topic := range f.topics {
		if h.topics[topic] == nil {
			h.topics[topic] = map[*Stream]bool{}
		}
		h.topics[topic][s] = true
		if changed(topic) {
			first = append(slices.Clip(first), eventOf(topic, len(h.topics[topic]))...)
		}
	}
	s.pending = [][]byte{first}
	h.open++
	h.openOf[f.user]++
	return s
}

// Serve starts the stream as the response and returns. It hijacks the connection: the
// HTTP server needs 25 KiB for each, a stream a small part of that, and most of the many
// streams are idle.
func (h *Hub) Serve(w http.ResponseWriter, s *Stream) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Transfer-Encoding", "identity") // no chunks: the stream ends with its connection
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		h.Drop(s) // its reader has gone
		return nil
	}
	conn, _, err := control.Hijack()
	if err != nil {
		return err
	}
	h.attach(s, conn)
	h.watch(s, conn)
	return nil
}

// attach sets the connection of a stream.
func (h *Hub) attach(s *Stream, conn connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.ended {
		_ = conn.Close() // nothing was sent
		return
	}
	s.conn = conn
	h.flush(s)
}

// watch has a stream end when its reader hangs up. Without it, that is when a write fails.
func (h *Hub) watch(s *Stream, conn net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if descriptor, ok := conn.(syscall.Conn); ok && !s.ended {
		_ = h.departed.watch(s, descriptor)
	}
}

// endDepartedLocked ends the streams whose readers have hung up, with the lock acquired.
func (h *Hub) endDepartedLocked() {
	for _, s := range h.departed.list() {
		h.end(s)
	}
}

func (h *Hub) endDeparted() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.endDepartedLocked()
}

// Revoked ends the streams that hang on one of these revocation keys, unless
// their readers may still follow.
func (h *Hub) Revoked(ctx context.Context, keys []string) {
	set, ofProject := make(map[string]bool, len(keys)), false
	for _, key := range keys {
		set[key] = true
		ofProject = ofProject || strings.HasPrefix(key, "project:")
	}
	h.recheck(ctx, func(f *follower) bool { return f.dependsOn(set, ofProject) })
}

// Cut ends all streams. Browsers reconnect and are authorized again.
func (h *Hub) Cut() { h.endWhere(func(*follower) bool { return true }) }

// endWhere ends the streams of some followers.
func (h *Hub) endWhere(which func(*follower) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		if which(f) {
			for s := range f.streams {
				h.end(s)
			}
		}
	}
}

// Close ends all streams and the hub's own goroutines.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Cut()
	h.stop()
	h.running.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.departed.close()
}

// Count returns the number of open streams and of encoded events.
func (h *Hub) Count() (streams int, encoded int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open, h.encoded
}

// Drop ends a stream, whether it has begun or not. When it returns, nothing
// more is sent.
func (h *Hub) Drop(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(s)
}

// end is Drop with the lock acquired.
func (h *Hub) end(s *Stream) {
	if s.ended {
		return
	}
	s.ended, s.pending = true, nil
	h.departed.forget(s)
	if s.conn != nil {
		_ = s.conn.Close() // nothing is lost: what was written is on its way
	}
	h.remove(s)
}

// offer queues an event for a stream, or ends the stream if its queue is full. The
// browser then reconnects and receives the missed changes.
func (h *Hub) offer(s *Stream, event []byte) {
	if len(s.pending) == len(s.follower.topics)+spare {
		h.end(s)
		return
	}
	s.pending = append(s.pending, event)
	h.flush(s)
}

// flush has what is pending sent.
func (h *Hub) flush(s *Stream) {
	if s.conn != nil && !s.sending {
		events := s.pending
		s.pending, s.sending = nil, true
		go h.send(s, events)
	}
}

// send sends events, and what is pending then, until nothing is or a write fails.
func (h *Hub) send(s *Stream, events [][]byte) {
	for len(events) > 0 {
		for _, event := range events {
			if send(s.conn, h.holds, event) != nil {
				h.Drop(s)
				return
			}
		}
		h.mu.Lock()
		events = s.pending
		s.pending, s.sending = nil, len(events) > 0
		h.mu.Unlock()
	}
}

// follower finds or adds the follower of an actor and topics.
func (h *Hub) follower(actor policies.Actor, topics []string) *follower {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	all := strings.Join(topics, "\n") // of its own: the request that the topics are parts of goes
	key := followerKey{user: actor.User.ID, generation: actor.User.SessionGeneration, session: actor.Session, via: actor.Via, topics: all,
		byProvider: actor.ByProvider}
	f := h.followers[key]
	if f == nil {
		f = &follower{followerKey: key, topics: strings.Split(all, "\n"), slot: h.turn, streams: map[*Stream]bool{}}
		h.turn = (h.turn + 1) % steps
		h.followers[key] = f
	}
	return f
}

// remove removes a stream and whatever is there for it alone.
func (h *Hub) remove(s *Stream) {
	f := s.follower
	delete(f.streams, s)
	h.open--
	if h.openOf[f.user]--; h.openOf[f.user] == 0 {
		delete(h.openOf, f.user)
	}
	for _, topic := range f.topics {
		if delete(h.topics[topic], s); len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
	}
	if len(f.streams) == 0 {
		delete(h.followers, f.followerKey)
	}
}

// followersWhere lists some of the followers.
func (h *Hub) followersWhere(which func(*follower) bool) (list []*follower) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		if which(f) {
			list = append(list, f)
		}
	}
	return list
}
