package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// However many streams an event goes to, it is encoded once; and one that
// nobody follows is not encoded.
func TestEventIsEncodedOnce(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		var all []*pipe
		for user := range int64(300) {
			topics := []string{"pool"}
			if user%3 == 0 {
				topics = append(topics, fmt.Sprint("workspace:", user))
			}
			all = append(all, s.follow(user, "", topics...))
		}
		for round := 1; round <= 3; round++ {
			s.tell("pool", "project:8")
			if _, encoded := s.Count(); encoded != int64(round) {
				s.Errorf("%d events were encoded %d times", round, encoded)
			}
		}
		for _, p := range all {
			s.wantTold(p, "pool", "pool", "pool")
		}
	})
}

// Many streams of a topic are told, with each of its changes, over which time to spread
// what follows; few are not, and neither are those of other topics.
func TestManyStreamsAreTold(t *testing.T) {
	const spread, change = "event: jitter\ndata: 251\n\n", "event: change\ndata: pool\n\n"
	inScene(t, everybodyMay, func(s scene) {
		read := s.Cursor()
		var all []*pipe
		for user := range int64(fewStreams) {
			all = append(all, s.follow(user, "", "pool", "projects"))
		}
		other := s.follow(1, "", "workspace:5")
		s.tell("pool", "workspace:5")
		all = append(all, s.follow(fewStreams, read, "pool"))
		s.tell("pool", "workspace:5")
		for i, p := range all {
			want := string(greeting) + change + spread + change
			if i == fewStreams {
				want = string(greeting) + spread + change + spread + change
			}
			if got := p.got.String(); got != want {
				s.Fatalf("stream %d says %q, not %q", i, got, want)
			}
		}
		if got := other.got.String(); strings.Contains(got, "jitter") {
			s.Errorf("the stream of another topic says %q", got)
		}
		all[0].hangUp()
		synctest.Wait()
		s.tell("pool")
		if got := all[1].got.String(); !strings.HasSuffix(got, spread+change+change) {
			s.Errorf("after one has left, a stream says %q", got)
		}
	})
}

// Changes that come together are told together, each topic once.
func TestChangesAreJoined(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		both, one, other := s.follow(1, "", "pool", "workspace:5", "pool"), s.follow(2, "", "workspace:5"), s.follow(3, "", "projects")
		s.mu.Lock() // nothing is delivered meanwhile
		for range 3 {
			s.changed["workspace:5"], s.changed["pool"] = true, true
		}
		s.mu.Unlock()
		s.deliver()
		s.tell("elsewhere")
		s.wantTold(both, "pool", "workspace:5")
		s.wantTold(one, "workspace:5")
		s.wantTold(other)
	})
}

// A reader that does not read delays nobody, is told what it missed when it
// reads again, and is dropped when it does not.
func TestSlowReader(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		slow, slower, quick := s.follow(1, "", "pool", "projects"), s.follow(2, "", "pool", "projects"), s.follow(3, "", "pool", "projects")
		slow.widen(5) // in the middle of an event
		slower.widen(0)
		for range 4 {
			s.tell("pool")
		}
		s.tell("projects")
		s.wantTold(quick, "pool", "pool", "pool", "pool", "projects")
		s.wantTold(slow)

		s.pass(takeTime / 2)
		slow.widen(unbounded)
		s.pass(takeTime)
		s.wantTold(slow, "pool", "pool", "pool", "pool", "projects")
		if !slower.isClosed() || slow.isClosed() || quick.isClosed() || s.streams() != 2 {
			s.Errorf("closed: slower %v, slow %v, quick %v; %d streams are left", slower.isClosed(), slow.isClosed(), quick.isClosed(), s.streams())
		}
		// It has caught up: being behind again is a new beginning.
		slow.widen(0)
		s.tell("pool")
		s.pass(takeTime - time.Second)
		if slow.isClosed() {
			s.Error("dropped before its time")
		}
		s.pass(2 * time.Second)
		if !slow.isClosed() {
			s.Error("not dropped")
		}
	})
}

// A reader that falls far behind is dropped before its events fill the
// memory; others are told everything.
func TestReaderFarBehind(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		slow, quick := s.follow(1, "", "pool"), s.follow(2, "", "pool")
		slow.widen(0)
		for range 2 * spare {
			s.tell("pool")
		}
		if n := len(quick.told(s)); !slow.isClosed() || quick.isClosed() || n != 2*spare {
			s.Errorf("closed: slow %v, quick %v, which was told %d times", slow.isClosed(), quick.isClosed(), n)
		}
	})
}

// Whatever becomes of the connection's room: what a stream tells is well
// formed, and tells of every topic after its last change, or it has ended and
// the next one of the same page tells.
func TestStreamsLoseNothing(t *testing.T) {
	names := []string{"environments", "pool", "projects"}
	inScene(t, everybodyMay, func(s scene) {
		rapid.Check(t, func(t *rapid.T) {
			mark := s.Cursor()
			p := newPipe(0)
			s.attach(s.Subscribe(person(1), names, ""), p)
			defer s.cut(1)
			expected := map[string]int{} // what the stream had told, in all, when a topic last changed
			for range rapid.IntRange(1, 40).Draw(t, "n") {
				switch rapid.IntRange(0, 2).Draw(t, "what") {
				case 0:
					name := rapid.SampledFrom(names).Draw(t, "topic")
					expected[name] = len(p.told(t))
					s.Publish([]string{name})
				case 1:
					synctest.Wait()
				case 2:
					p.widen(rapid.IntRange(0, 80).Draw(t, "headroom"))
				}
			}
			p.widen(unbounded)
			synctest.Wait()
			told := p.told(t)
			if p.isClosed() {
				expected = map[string]int{}
				next := s.follow(1, mark, names...)
				told = next.told(t)
			}
			for name, from := range expected {
				if !slices.Contains(told[from:], name) {
					t.Fatalf("%s changed after %d events were told, and is not among the later of %q", name, from, told)
				}
			}
		})
	})
}

// A right is asked for once for all windows of a session that show the same,
// in each beat; when it has ended, so have they.
func TestRightsAreCheckedTogether(t *testing.T) {
	var asked atomic.Int64
	var revoked atomic.Bool
	check := func(_ context.Context, a policies.Actor, topics []string) error {
		asked.Add(1)
		if revoked.Load() && a.User.ID == 1 && slices.Contains(topics, "project:5") {
			return models.NotFound("topic")
		}
		return nil
	}
	inScene(t, check, func(s scene) {
		var windows []*pipe
		for range 5 {
			windows = append(windows, s.follow(1, "", "pool", "project:5"), s.follow(1, "", "project:5", "pool"))
		}
		elsewhere, other := s.follow(1, "", "pool"), s.follow(2, "", "pool", "project:5")
		second := newPipe(unbounded)
		s.attach(s.Subscribe(policies.Actor{User: models.User{ID: 2}, Session: "another"}, []string{"pool", "project:5"}, ""), second)
		s.beats(1)
		if got := asked.Load(); got != 4 {
			s.Errorf("asked %d times in a beat, not once for each of 4 followers", got)
		}
		revoked.Store(true)
		s.beats(1)
		s.tell("pool")
		for _, p := range windows {
			s.wantTold(p)
			if !p.isClosed() {
				s.Error("a stream goes on without its right")
			}
		}
		if elsewhere.isClosed() || other.isClosed() || second.isClosed() || s.streams() != 3 {
			s.Errorf("%d streams are left, not 3", s.streams())
		}
	})
}

// A server that has lost the others sends nothing more.
func TestNothingIsSentApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var apart atomic.Bool
		s := scene{t, New(everybodyMay, func() bool { return !apart.Load() })}
		defer s.Close()
		p := s.follow(1, "", "pool")
		s.tell("pool")
		apart.Store(true)
		s.tell("pool")
		late := s.follow(2, "", "pool")
		s.wantTold(p, "pool")
		if !p.isClosed() || !late.isClosed() || late.got.Len() > 0 {
			t.Errorf("closed: %v, %v, which was sent %q", p.isClosed(), late.isClosed(), late.got.String())
		}
	})
}

// Cutting ends what is open at once, and what is about to open; nothing of it
// is remembered.
func TestCut(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		mine, too, other := s.follow(1, "", "pool"), s.follow(1, "", "workspace:3"), s.follow(2, "", "pool")
		opening, late := s.Subscribe(person(1), []string{"pool"}, ""), newPipe(unbounded)
		s.cut(1)
		s.attach(opening, late)
		if !mine.isClosed() || !too.isClosed() || !late.isClosed() || other.isClosed() || late.got.Len() > 0 {
			s.Errorf("closed: %v, %v, %v; another's: %v", mine.isClosed(), too.isClosed(), late.isClosed(), other.isClosed())
		}
		s.tell("workspace:3")
		if n, encoded := s.Count(); n != 1 || encoded != 0 {
			s.Errorf("%d streams, %d events encoded", n, encoded)
		}
		s.cut(2)
		if len(s.topics)+len(s.followers)+len(s.changed)+len(s.openOf) > 0 {
			s.Errorf("remembered: %v %v %v %v", s.topics, s.followers, s.changed, s.openOf)
		}
	})
}

// One user has so many streams and no more, in whatever windows and sessions;
// those that were left make room. Others are not concerned.
func TestStreamsOfOneUserAreBounded(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		var open []*pipe
		for i := range MaxStreams {
			open = append(open, s.follow(1, "", "pool", fmt.Sprint("workspace:", i%3)))
		}
		elsewhere := policies.Actor{User: models.User{ID: 1}, Session: "another"}
		if v := s.Subscribe(elsewhere, []string{"projects"}, ""); v != nil || s.streams() != MaxStreams {
			s.Fatalf("one more stream was begun: %d", s.streams())
		}
		s.follow(2, "", "pool")
		open[5].hangUp()
		synctest.Wait()
		v := s.Subscribe(elsewhere, []string{"projects"}, "")
		if v == nil || !open[5].isClosed() || open[6].isClosed() || s.Subscribe(elsewhere, []string{"projects"}, "") != nil {
			s.Fatalf("%d streams: one place was to be had, and one only", s.streams())
		}
		s.Drop(v)
		s.cut(1)
		s.cut(2)
		if len(s.openOf) > 0 || s.streams() != 0 {
			s.Errorf("counted after the end: %v, %d", s.openOf, s.streams())
		}
	})
}

// A page that was read before a change learns of it when its stream begins.
func TestMarks(t *testing.T) {
	inScene(t, everybodyMay, func(s scene) {
		s.Publish([]string{"pool"})
		read := s.Cursor()
		s.Publish([]string{"projects"})
		for _, c := range []struct {
			name, mark string
			want       []string
		}{
			{"read before the last change", read, []string{"projects"}},
			{"read now", s.Cursor(), nil},
			{"read from another server", "other.7", []string{"pool", "projects"}},
			{"not a mark", "x", []string{"pool", "projects"}},
			{"no mark", "", nil},
		} {
			if got := s.follow(1, c.mark, "projects", "pool").told(s); !slices.Equal(got, c.want) {
				s.Errorf("%s: the stream told of %q, not %q", c.name, got, c.want)
			}
		}
		// While a stream begins, changes are kept for it.
		v, p := s.Subscribe(person(1), []string{"pool", "projects"}, read), newPipe(unbounded)
		s.tell("pool")
		s.attach(v, p)
		synctest.Wait()
		s.wantTold(p, "projects", "pool")
	})
}

func TestTooManyTopicsToRemember(t *testing.T) {
	m := newChangeLog()
	m.add([]string{"pool"})
	old := m.cursor()
	for i := range maxTopics {
		m.add([]string{fmt.Sprint("workspace:", i)})
	}
	if changed := m.after(old); !changed("pool") || len(m.last) > maxTopics {
		t.Errorf("a page older than what is remembered counts as new; %d topics are remembered", len(m.last))
	}
	if changed := m.after(m.cursor()); changed("pool") || changed("workspace:1") {
		t.Error("a page that was read now counts as old")
	}
}

// Streams come and go while changes are told; closing ends all of them.
func TestHubUnderWay(t *testing.T) {
	var pipes [4][]*pipe
	h := New(everybodyMay, always)
	follow := func(user int64, topics ...string) *pipe {
		p := newPipe(unbounded)
		h.attach(h.Subscribe(person(user), topics, ""), p)
		return p
	}
	var busy sync.WaitGroup
	for k := range pipes {
		busy.Go(func() {
			for i := range 200 {
				user := int64(k*1000 + i)
				pipes[k] = append(pipes[k], follow(user, "pool", fmt.Sprint("workspace:", i%7)))
				h.Publish([]string{"pool", fmt.Sprint("workspace:", i%5)})
				if i%4 == 0 {
					h.endWhere(func(f *follower) bool { return f.user == user })
				}
				h.sendKeepAlives(i % steps)
			}
		})
	}
	busy.Wait()
	h.Close()
	late := follow(1, "pool")
	for _, p := range append(slices.Concat(pipes[:]...), late) {
		p.told(t)
		if !p.isClosed() {
			t.Fatal("a stream is open after the hub has closed")
		}
		if p.twice {
			t.Fatal("a connection was closed twice")
		}
	}
	if n, _ := h.Count(); n != 0 {
		t.Errorf("%d streams are left", n)
	}
	h.Close() // again, as a shutdown does
}

// A revocation asks about the streams that hang on it, and ends those that
// are refused before it returns.
func TestRevocationEndsStreams(t *testing.T) {
	for _, c := range []struct {
		key  string
		ends []int // of the streams below
	}{
		{"user:1", []int{0, 1}},
		{store.SessionKey("s"), []int{0, 1, 2}},
		{"project:5", []int{0, 2}},
		{"user:9", nil},
		{"workspace:5", nil},
	} {
		var revoked atomic.Bool
		var asked atomic.Int64
		check := func(context.Context, policies.Actor, []string) error {
			asked.Add(1)
			if revoked.Load() {
				return models.NotFound("topic")
			}
			return nil
		}
		inScene(t, check, func(s scene) {
			streams := []*pipe{s.follow(1, "", "pool", "project:5"), s.follow(1, "", "pool"), s.follow(2, "", "project:5")}
			s.Revoked(t.Context(), []string{"user:77", c.key})
			if n := int(asked.Load()); n != len(c.ends) || s.streams() != 3 {
				t.Errorf("%s: asked %d times, and %d streams are left", c.key, n, s.streams())
			}
			revoked.Store(true)
			s.Revoked(t.Context(), []string{c.key})
			for i, p := range streams {
				if p.isClosed() != slices.Contains(c.ends, i) {
					t.Errorf("%s: stream %d is closed: %v", c.key, i, p.isClosed())
				}
			}
			s.Cut()
			if n := s.streams(); n != 0 {
				t.Errorf("%d streams are left after all were cut", n)
			}
		})
	}
}
