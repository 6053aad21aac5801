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
)

// hub tells event streams which topics have changed. What a topic's readers
// see is fetched by each with its own rights; the event itself is encoded
// once.
type hub struct {
	mu      sync.Mutex
	readers map[*reader]bool
	closed  bool
}

// reader is one event stream: the topics it follows and those that have
// changed since it last wrote.
type reader struct {
	topics  map[string]bool
	pending map[string][]byte
	signal  chan struct{}
}

func newHub() *hub { return &hub{readers: map[*reader]bool{}} }

func (h *hub) subscribe(topics []string) *reader {
	r := &reader{topics: map[string]bool{}, pending: map[string][]byte{}, signal: make(chan struct{}, 1)}
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
	return r
}

func (h *hub) unsubscribe(r *reader) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.readers, r)
}

func (h *hub) publish(topics []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range topics {
		var frame []byte
		for r := range h.readers {
			if !r.topics[topic] {
				continue
			}
			if frame == nil {
				frame = []byte("event: change\ndata: " + topic + "\n\n")
			}
			r.pending[topic] = frame
			select {
			case r.signal <- struct{}{}:
			default:
			}
		}
	}
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
	r := a.hub.subscribe(topics)
	defer a.hub.unsubscribe(r)
	w := c.Response()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	if _, err := w.Write([]byte(": weir\nretry: 2000\n\n")); err != nil {
		return nil
	}
	w.Flush()
	beat := time.NewTicker(keepAlive)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-r.signal:
			if !open {
				return nil
			}
			for _, frame := range a.hub.take(r) {
				if _, err := w.Write(frame); err != nil {
					return nil
				}
			}
		case <-beat.C:
			if a.mayFollow(c, topics) != nil {
				return nil
			}
			if _, err := w.Write([]byte(": alive\n\n")); err != nil {
				return nil
			}
		}
		w.Flush()
	}
}

// mayFollow checks, with the rights of now, that every topic is the reader's
// to see.
func (a *App) mayFollow(c echo.Context, topics []string) error {
	actor, err := a.current(c)
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

// current reads the actor's rights anew: a stream outlives its request's.
func (a *App) current(c echo.Context) (policies.Actor, error) {
	ctx := c.Request().Context()
	was := actorOf(ctx)
	now, err := a.Accounts.Load(ctx, was.User.ID)
	if err == nil && now.User.SessionEpoch != was.User.SessionEpoch {
		err = &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Sign in first.")}
	}
	return now, err
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
