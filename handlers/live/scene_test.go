package live

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/models"
	"weir/policies"
)

// unbounded is a room that is never full.
const unbounded = 1 << 30

// pipe is a connection in memory: it takes bytes while there is room.
type pipe struct {
	mu       sync.Mutex
	headroom int
	got      strings.Builder
	deadline time.Time
	closed   bool
	changed  chan struct{} // closed when something above has changed
	left     chan struct{} // closed when the reader hangs up
	twice    bool          // closed twice
}

func newPipe(headroom int) *pipe {
	return &pipe{headroom: headroom, changed: make(chan struct{}), left: make(chan struct{})}
}

// Write waits for room until the deadline.
func (p *pipe) Write(b []byte) (n int, err error) {
	for {
		p.mu.Lock()
		take := min(p.headroom, len(b)-n)
		if p.closed {
			take = 0
		}
		p.headroom -= take
		p.got.Write(b[n : n+take])
		closed, changed, wait := p.closed, p.changed, time.Until(p.deadline)
		p.mu.Unlock()
		if n += take; n == len(b) && !closed {
			return n, nil
		}
		if closed {
			return n, io.ErrClosedPipe
		}
		select {
		case <-changed:
		case <-time.After(wait):
			return n, os.ErrDeadlineExceeded
		}
	}
}

func (p *pipe) SetWriteDeadline(t time.Time) error {
	p.set(func() { p.deadline = t })
	return nil
}

func (p *pipe) Close() error {
	p.set(func() {
		if p.twice = p.closed; !p.closed {
			p.closed = true
			p.hangUp()
		}
	})
	if p.twice {
		return errors.New("closed twice")
	}
	return nil
}

// hangUp makes the reader leave.
func (p *pipe) hangUp() {
	select {
	case <-p.left:
	default:
		close(p.left)
	}
}

func (p *pipe) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	close(p.changed)
	p.changed = make(chan struct{})
}

// widen sets how much the pipe takes from now on.
func (p *pipe) widen(headroom int) { p.set(func() { p.headroom = headroom }) }

func (p *pipe) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// told is what came through the pipe so far: the topics, in order. It fails
// on anything else than a greeting, comments, and whole events but the last.
func (p *pipe) told(t interface{ Fatalf(string, ...any) }) (topics []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	text, ok := strings.CutPrefix(p.got.String(), string(greeting))
	if !ok {
		if !strings.HasPrefix(string(greeting), text) {
			t.Fatalf("the stream begins with %q", text)
		}
		return nil
	}
	parts := strings.SplitAfter(text, "\n\n")
	for _, part := range parts[:len(parts)-1] { // the last is not ended
		name, isEvent := strings.CutPrefix(part, "event: change\ndata: ")
		if !isEvent && part != string(alive) && !strings.HasPrefix(part, "event: jitter\n") {
			t.Fatalf("the stream says %q", part)
		}
		if isEvent {
			topics = append(topics, strings.TrimSuffix(name, "\n\n"))
		}
	}
	return topics
}

func everybodyMay(context.Context, policies.Actor, []string) error { return nil }

func always() bool { return true }

func person(id int64) policies.Actor { return policies.Actor{User: models.User{ID: id}, Session: "s"} }

// scene is a hub in a bubble whose clock runs when nothing else does.
type scene struct {
	*testing.T
	*Hub
}

// inScene runs a test in a bubble with a hub.
func inScene(t *testing.T, check func(context.Context, policies.Actor, []string) error, test func(scene)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := scene{t, New(check, always)}
		defer s.Close()
		test(s)
	})
}

// follow opens a stream of a user on a pipe, and waits until it is told what
// there is to tell.
func (s scene) follow(user int64, since string, topics ...string) *pipe {
	s.Helper()
	p, stream := newPipe(unbounded), s.Subscribe(person(user), topics, since)
	s.attach(stream, p)
	go func() { // as departures do with real connections
		<-p.left
		s.Drop(stream)
	}()
	synctest.Wait()
	return p
}

// tell publishes topics and waits until everybody has been told who reads.
func (s scene) tell(topics ...string) {
	s.Publish(topics)
	synctest.Wait()
}

// beats lets every follower have its turn so many times.
func (s scene) beats(n int) { s.pass(time.Duration(n) * keepAlive) }

// pass lets the time of the synctest bubble pass: nothing waits for real.
func (s scene) pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// cut ends a user's streams.
func (s scene) cut(user int64) {
	s.endWhere(func(f *follower) bool { return f.user == user })
}

func (s scene) streams() int {
	n, _ := s.Count()
	return n
}

func (s scene) wantTold(p *pipe, want ...string) {
	s.Helper()
	if got := p.told(s); !slices.Equal(got, want) {
		s.Errorf("the stream told of %q, not %q", got, want)
	}
}
