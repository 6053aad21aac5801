package handlers

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/policies"
)

// unbounded is a room that is never full.
const unbounded = 1 << 30

// pipe is a line in memory: it takes bytes while there is room.
type pipe struct {
	mu     sync.Mutex
	room   int
	got    strings.Builder
	left   bool
	closed bool
}

func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return 0, io.ErrClosedPipe
	}
	n := min(p.room, len(b))
	p.room -= n
	p.got.Write(b[:n])
	return n, nil
}

func (p *pipe) Left() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.left
}

func (p *pipe) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errors.New("closed twice")
	}
	p.closed = true
	return nil
}

func (p *pipe) set(room int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room = room
}

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
		if !isEvent && part != string(alive) {
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

// cut ends a user's streams.
func (h *hub) cut(user int64) { h.end(func(f *follower) bool { return f.user == user }) }

func person(id int64) policies.Actor { return policies.Actor{User: models.User{ID: id}, Session: "s"} }

// follow opens a stream of a user on a pipe.
func follow(h *hub, user int64, since string, topics ...string) *pipe {
	p := &pipe{room: unbounded}
	h.attach(h.subscribe(person(user), topics, since), p)
	return p
}

func (h *hub) streams() int {
	n, _ := h.count()
	return n
}

func wantTold(t *testing.T, p *pipe, want ...string) {
	t.Helper()
	if got := p.told(t); !slices.Equal(got, want) {
		t.Errorf("the stream told of %q, not %q", got, want)
	}
}

// However many streams an event goes to, it is encoded once; and one that
// nobody follows is not encoded.
func TestEventIsEncodedOnce(t *testing.T) {
	h := newHub(everybodyMay, always)
	var all []*pipe
	for user := range int64(300) {
		topics := []string{"pool"}
		if user%3 == 0 {
			topics = append(topics, "workspace:"+id(user))
		}
		all = append(all, follow(h, user, "", topics...))
	}
	for round := 1; round <= 3; round++ {
		h.publish([]string{"pool", "project:8"})
		h.deliver(nil)
		if _, encoded := h.count(); encoded != int64(round) {
			t.Errorf("%d events were encoded %d times", round, encoded)
		}
	}
	for _, p := range all {
		wantTold(t, p, "pool", "pool", "pool")
	}
}

// Changes that come together are told together, each topic once.
func TestChangesAreJoined(t *testing.T) {
	h := newHub(everybodyMay, always)
	both, one, other := follow(h, 1, "", "pool", "workspace:5", "pool"), follow(h, 2, "", "workspace:5"), follow(h, 3, "", "projects")
	for range 3 {
		h.publish([]string{"workspace:5"})
		h.publish([]string{"pool"})
	}
	h.deliver(nil)
	h.deliver(nil)
	wantTold(t, both, "pool", "workspace:5")
	wantTold(t, one, "workspace:5")
	wantTold(t, other)
}

// A reader that does not read delays nobody, is told what it missed when it
// reads again, and is given up when it does not.
func TestSlowReader(t *testing.T) {
	h := newHub(everybodyMay, always)
	slow, slower, quick := follow(h, 1, "", "pool", "projects"), follow(h, 2, "", "pool", "projects"), follow(h, 3, "", "pool", "projects")
	slow.set(5) // in the middle of a frame
	slower.set(0)
	for range 4 {
		h.publish([]string{"pool"})
		h.deliver(nil)
	}
	h.publish([]string{"projects"})
	h.deliver(nil)
	wantTold(t, quick, "pool", "pool", "pool", "pool", "projects")
	wantTold(t, slow)

	beats(h, 1)
	slow.set(unbounded)
	beats(h, patience-1)
	wantTold(t, slow, "pool", "pool", "projects") // the one that was begun, and what came meanwhile
	if !slower.isClosed() || slow.isClosed() || quick.isClosed() || h.streams() != 2 {
		t.Errorf("closed: slower %v, slow %v, quick %v; %d streams are left", slower.isClosed(), slow.isClosed(), quick.isClosed(), h.streams())
	}
	// It has caught up: being behind again is a new beginning.
	slow.set(0)
	beats(h, patience-1)
	if slow.isClosed() {
		t.Error("given up before its time")
	}
}

// beats lets every follower have its turn so many times.
func beats(h *hub, n int) {
	for i := range n * steps {
		h.beat(i % steps)
	}
}

// Whatever becomes of the line's room: what a stream tells is well formed,
// and tells of every topic after its last change.
func TestStreamsLoseNothing(t *testing.T) {
	names := []string{"environments", "pool", "projects"}
	rapid.Check(t, func(t *rapid.T) {
		h := newHub(everybodyMay, always)
		p := &pipe{}
		v := h.subscribe(person(1), names, "")
		h.attach(v, p)
		expected := map[string]int{} // what the stream had told, in all, when a topic last changed
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				name := rapid.SampledFrom(names).Draw(t, "topic")
				expected[name] = len(p.told(t))
				h.publish([]string{name})
			case 1:
				h.deliver(nil)
			case 2:
				p.set(rapid.IntRange(0, 80).Draw(t, "room"))
			}
		}
		p.set(unbounded)
		h.deliver(nil)
		beats(h, 1)
		told := p.told(t)
		for name, from := range expected {
			if !slices.Contains(told[from:], name) {
				t.Fatalf("%s changed after %d events were told, and is not among the later of %q", name, from, told)
			}
		}
	})
}

// A right is asked for once for all windows of a session that show the same,
// in each beat; when it has ended, so have they.
func TestRightsAreCheckedTogether(t *testing.T) {
	var asked atomic.Int64
	var revoked atomic.Bool
	h := newHub(func(_ context.Context, a policies.Actor, topics []string) error {
		asked.Add(1)
		if revoked.Load() && a.User.ID == 1 && slices.Contains(topics, "project:5") {
			return models.NotFound("topic")
		}
		return nil
	}, always)
	var windows []*pipe
	for range 5 {
		windows = append(windows, follow(h, 1, "", "pool", "project:5"), follow(h, 1, "", "project:5", "pool"))
	}
	elsewhere, other := follow(h, 1, "", "pool"), follow(h, 2, "", "pool", "project:5")
	second := &pipe{room: unbounded}
	h.attach(h.subscribe(policies.Actor{User: models.User{ID: 2}, Session: "another"}, []string{"pool", "project:5"}, ""), second)
	beats(h, 1)
	if got := asked.Load(); got != 4 {
		t.Errorf("asked %d times in a beat, not once for each of 4 followers", got)
	}
	revoked.Store(true)
	h.publish([]string{"pool"})
	beats(h, 1)
	for _, p := range windows {
		wantTold(t, p)
		if !p.isClosed() {
			t.Error("a stream goes on without its right")
		}
	}
	if elsewhere.isClosed() || other.isClosed() || second.isClosed() || h.streams() != 3 {
		t.Errorf("%d streams are left, not 3", h.streams())
	}
}

func TestReaderThatLeftIsForgotten(t *testing.T) {
	h := newHub(everybodyMay, always)
	p, stays := follow(h, 1, "", "pool"), follow(h, 2, "", "pool")
	p.mu.Lock()
	p.left = true
	p.mu.Unlock()
	beats(h, 1)
	if !p.isClosed() || stays.isClosed() || h.streams() != 1 {
		t.Errorf("closed: %v, %v; %d streams", p.isClosed(), stays.isClosed(), h.streams())
	}
}

// Cutting ends what is open at once, and what is about to open; nothing of it
// is remembered.
func TestCut(t *testing.T) {
	h := newHub(everybodyMay, always)
	mine, too, other := follow(h, 1, "", "pool"), follow(h, 1, "", "workspace:3"), follow(h, 2, "", "pool")
	opening, late := h.subscribe(person(1), []string{"pool"}, ""), &pipe{room: unbounded}
	h.cut(1)
	h.attach(opening, late)
	if !mine.isClosed() || !too.isClosed() || !late.isClosed() || other.isClosed() || late.got.Len() > 0 {
		t.Errorf("closed: %v, %v, %v; another's: %v", mine.isClosed(), too.isClosed(), late.isClosed(), other.isClosed())
	}
	h.publish([]string{"workspace:3"})
	if n, encoded := h.count(); n != 1 || encoded != 0 {
		t.Errorf("%d streams, %d events encoded", n, encoded)
	}
	h.cut(2)
	if len(h.topics)+len(h.audiences)+len(h.followers)+len(h.changed)+len(h.open) > 0 {
		t.Errorf("remembered: %v %v %v %v", h.topics, h.audiences, h.followers, h.changed)
	}
}

// One user has so many streams and no more, in whatever windows and sessions;
// those that were left without a word make room. Others are not concerned.
func TestStreamsOfOneUserAreBounded(t *testing.T) {
	h := newHub(everybodyMay, always)
	var open []*pipe
	for i := range maxViewers {
		open = append(open, follow(h, 1, "", "pool", "workspace:"+id(int64(i%3))))
	}
	elsewhere := policies.Actor{User: models.User{ID: 1}, Session: "another"}
	if v := h.subscribe(elsewhere, []string{"projects"}, ""); v != nil || h.streams() != maxViewers {
		t.Fatalf("one more stream was begun: %d", h.streams())
	}
	follow(h, 2, "", "pool")
	open[5].mu.Lock()
	open[5].left = true
	open[5].mu.Unlock()
	v := h.subscribe(elsewhere, []string{"projects"}, "")
	if v == nil || !open[5].isClosed() || open[6].isClosed() || h.subscribe(elsewhere, []string{"projects"}, "") != nil {
		t.Fatalf("%d streams: one place was to be had, and one only", h.streams())
	}
	h.drop(v)
	h.cut(1)
	h.cut(2)
	if len(h.open) > 0 || h.streams() != 0 {
		t.Errorf("counted after the end: %v, %d", h.open, h.streams())
	}
}

// A page that was read before a change learns of it when its stream begins.
func TestMarks(t *testing.T) {
	h := newHub(everybodyMay, always)
	h.publish([]string{"pool"})
	read := h.mark()
	h.publish([]string{"projects"})
	for _, c := range []struct {
		name, mark string
		want       []string
	}{
		{"read before the last change", read, []string{"projects"}},
		{"read now", h.mark(), nil},
		{"read from another server", "other.7", []string{"pool", "projects"}},
		{"not a mark", "x", []string{"pool", "projects"}},
		{"no mark", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) { wantTold(t, follow(h, 1, c.mark, "projects", "pool"), c.want...) })
	}
	// While a stream begins, changes are kept for it.
	v, p := h.subscribe(person(1), []string{"pool", "projects"}, read), &pipe{room: unbounded}
	h.publish([]string{"pool"})
	h.deliver(nil)
	h.attach(v, p)
	wantTold(t, p, "pool", "projects")
}

func TestTooManyTopicsToRemember(t *testing.T) {
	m := newMarks()
	m.add([]string{"pool"})
	old := m.now()
	for i := range maxRemembered {
		m.add([]string{fmt.Sprint("workspace:", i)})
	}
	if changed := m.after(old); !changed("pool") || len(m.last) > maxRemembered {
		t.Errorf("a page older than what is remembered counts as new; %d topics are remembered", len(m.last))
	}
	if changed := m.after(m.now()); changed("pool") || changed("workspace:1") {
		t.Error("a page that was read now counts as old")
	}
}

// Streams come and go while changes are told; closing ends all of them.
func TestHubUnderWay(t *testing.T) {
	var pipes [4][]*pipe
	h := newHub(everybodyMay, always)
	h.run(nil)
	var busy sync.WaitGroup
	for k := range pipes {
		busy.Go(func() {
			for i := range 200 {
				p := follow(h, int64(k*1000+i), "", "pool", "workspace:"+id(int64(i%7)))
				pipes[k] = append(pipes[k], p)
				h.publish([]string{"pool", "workspace:" + id(int64(i%5))})
				if i%4 == 0 {
					h.cut(int64(k*1000 + i))
				}
				h.beat(i % steps)
			}
		})
	}
	busy.Wait()
	h.close()
	late := follow(h, 1, "", "pool")
	for _, p := range append(slices.Concat(pipes[:]...), late) {
		p.told(t)
		if !p.isClosed() {
			t.Fatal("a stream is open after the hub has closed")
		}
	}
	if n := h.streams(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
	h.close() // again, as a shutdown does
}

// A revocation asks about the streams that hang on it, and ends those that
// are refused before it returns.
func TestRevocationEndsStreams(t *testing.T) {
	for _, c := range []struct {
		tie  string
		ends []int // of the streams below
	}{
		{"user:1", []int{0, 1}},
		{models.SessionTie("s"), []int{0, 1, 2}},
		{"project:5", []int{0, 2}},
		{"user:9", nil},
		{"workspace:5", nil},
	} {
		var revoked atomic.Bool
		var asked atomic.Int64
		h := newHub(func(context.Context, policies.Actor, []string) error {
			asked.Add(1)
			if revoked.Load() {
				return models.NotFound("topic")
			}
			return nil
		}, always)
		streams := []*pipe{follow(h, 1, "", "pool", "project:5"), follow(h, 1, "", "pool"), follow(h, 2, "", "project:5")}
		h.Revoked(t.Context(), []string{"user:77", c.tie})
		if n := int(asked.Load()); n != len(c.ends) || h.streams() != 3 {
			t.Errorf("%s: asked %d times, and %d streams are left", c.tie, n, h.streams())
		}
		revoked.Store(true)
		h.Revoked(t.Context(), []string{c.tie})
		for i, p := range streams {
			if p.isClosed() != slices.Contains(c.ends, i) {
				t.Errorf("%s: stream %d is closed: %v", c.tie, i, p.isClosed())
			}
		}
		h.Cut()
		if n := h.streams(); n != 0 {
			t.Errorf("%d streams are left after all were cut", n)
		}
	}
}
