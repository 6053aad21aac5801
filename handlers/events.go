package handlers

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
)

const (
	keepAlive = 8 * time.Second
	maxTopics = 64

	maxRemembered = 4096 // topics
)

// hub tells event streams which topics have changed. What a topic's readers
// see is fetched by each with its own rights; the event itself is encoded
// once.
type hub struct {
	mu      sync.Mutex
	readers map[*reader]bool
	closed  bool

	// A page is read before its stream begins; by its mark the stream finds
	// what has changed in between.
	life      string           // tells this process's marks from another's
	changes   int64            // so far
	last      map[string]int64 // per topic the number of its last change
	forgotten int64            // changes up to this number are not in last
}

// reader is one event stream: the topics it follows and those that have
// changed since it last wrote.
type reader struct {
	user    int64
	topics  map[string]bool
	pending map[string][]byte
	signal  chan struct{}
}

func newHub() *hub {
	return &hub{readers: map[*reader]bool{}, last: map[string]int64{}, life: strconv.FormatInt(time.Now().UnixNano(), 36)}
}

// mark is where the changes stand. What is read from now on is at least as
// new.
func (h *hub) mark() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life + "." + strconv.FormatInt(h.changes, 10)
}

// changedSince lists the topics that may have changed after a mark; none when
// there is no mark.
func (h *hub) changedSince(mark string, topics []string) (changed []string) {
	life, number, _ := strings.Cut(mark, ".")
	n, err := strconv.ParseInt(number, 10, 64)
	for _, t := range topics {
		if mark != "" && (err != nil || life != h.life || n < h.forgotten || n < h.last[t]) {
			changed = append(changed, t)
		}
	}
	return changed
}

// subscribe begins a stream for a page that was read at the mark since.
func (h *hub) subscribe(user int64, topics []string, since string) *reader {
	r := &reader{user: user, topics: map[string]bool{}, pending: map[string][]byte{}, signal: make(chan struct{}, 1)}
	for _, t := range topics {
		r.topics[t] = true
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		close(r.signal)
		return r
	}
	h.readers[r] = true
	for _, t := range h.changedSince(since, topics) {
		r.note(t, frameOf(t))
	}
	return r
}

// note keeps a change until the stream takes it.
func (r *reader) note(topic string, frame []byte) {
	r.pending[topic] = frame
	select {
	case r.signal <- struct{}{}:
	default:
	}
}

func frameOf(topic string) []byte { return []byte("event: change\ndata: " + topic + "\n\n") }

func (h *hub) unsubscribe(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, r)
}

func (h *hub) publish(topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.changes++
	for _, topic := range topics {
		h.remember(topic)
		var frame []byte
		for r := range h.readers {
			if !r.topics[topic] {
				continue
			}
			if frame == nil {
				frame = frameOf(topic)
			}
			r.note(topic, frame)
		}
	}
}

// remember notes a topic's last change. When there are too many to remember
// all are forgotten: older pages are then taken to have changed.
func (h *hub) remember(topic string) {
	if len(h.last) >= maxRemembered {
		clear(h.last)
		h.forgotten = h.changes
	}
	h.last[topic] = h.changes
}

// take returns what is pending for r and forgets it.
func (h *hub) take(r *reader) (frames [][]byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for topic, frame := range r.pending {
		frames = append(frames, frame)
		delete(r.pending, topic)
	}
	return frames
}

func (h *hub) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for r := range h.readers {
		close(r.signal)
		delete(h.readers, r)
	}
}

// cut ends a user's streams; who may still follow asks again.
func (h *hub) cut(user int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for r := range h.readers {
		if r.user == user {
			close(r.signal)
			delete(h.readers, r)
		}
	}
}

func (h *hub) count() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.readers)
}

// events streams the names of topics that have changed, as long as the
// reader may follow them.
func (a *App) events(c echo.Context) error {
	ctx := c.Request().Context()
	topics := c.QueryParams()["topic"]
	if err := a.mayFollow(c, topics); err != nil {
		return err
	}
	r := a.hub.subscribe(actorOf(ctx).User.ID, topics, c.QueryParam("since"))
	defer a.hub.unsubscribe(r)
	if err := a.mayFollow(c, topics); err != nil {
		return err // a right that ended just before cut could see this stream
	}
	w := c.Response()
	if err := http.NewResponseController(w).SetReadDeadline(time.Time{}); err != nil {
		return err // the stream would end with the time that a request may take
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	return a.stream(c, r, topics)
}

// stream writes what is noted for r until the reader goes, may no longer
// follow, or stops reading.
func (a *App) stream(c echo.Context, r *reader, topics []string) error {
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	// The connection may serve other requests afterwards.
	defer func() { _ = http.NewResponseController(c.Response()).SetWriteDeadline(time.Time{}) }()
	frames := [][]byte{[]byte(": weir\nretry: 2000\n\n")}
	for {
		if send(c.Response(), frames) != nil {
			return nil // the reader has gone
		}
		select {
		case <-c.Request().Context().Done():
			return nil
		case _, open := <-r.signal:
			if !open {
				return nil
			}
			frames = a.hub.take(r)
		case <-beat.C:
			if a.mayFollow(c, topics) != nil {
				return nil
			}
			frames = [][]byte{[]byte(": alive\n\n")}
		}
	}
}

// send writes frames at once; a reader that does not read them in time is
// given up.
func send(w *echo.Response, frames [][]byte) error {
	if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(2 * keepAlive)); err != nil {
		return err
	}
	for _, frame := range frames {
		if _, err := w.Write(frame); err != nil {
			return err
		}
	}
	w.Flush()
	return nil
}

// mayFollow checks, with the rights of now, that every topic is the reader's
// to see.
func (a *App) mayFollow(c echo.Context, topics []string) error {
	actor, err := a.Accounts.Still(c.Request().Context(), actorOf(c.Request().Context()))
	if err != nil {
		return err
	}
	if len(topics) == 0 || len(topics) > maxTopics {
		return models.Invalid("topic", "must name 1 to %d topics", maxTopics)
	}
	for _, topic := range topics {
		if !a.mayFollowOne(c, actor, topic) {
			return models.NotFound("topic")
		}
	}
	return nil
}

func (a *App) mayFollowOne(c echo.Context, actor policies.Actor, topic string) bool {
	ctx := c.Request().Context()
	kind, rest, _ := strings.Cut(topic, ":")
	id, err := strconv.ParseInt(rest, 10, 64)
	switch kind {
	case "pool", "environments", "projects":
		return rest == ""
	case "user":
		return err == nil && id == actor.User.ID
	case "project":
		return err == nil && a.Access.May(actor, id, "project", "read")
	case "workspace":
		if err != nil {
			return false
		}
		_, err := a.Store.Read(ctx).Workspace(actor.Scope(), id)
		return err == nil
	default:
		return false
	}
}
