package handlers

import (
	"context"
	"maps"
	"slices"
	"strings"

	"weir/policies"
)

// subscribe begins a stream for a page that was read at the mark since. What
// changes from now on is kept until the stream has its line. On a closed hub
// it has ended already. It is nil when the actor has maxViewers already.
func (h *hub) subscribe(actor policies.Actor, topics []string, since string) *viewer {
	v := h.begin(actor, topics, since)
	if v == nil {
		h.tidy(actor.User.ID) // who turns pages quickly is ahead of the beat
		v = h.begin(actor, topics, since)
	}
	return v
}

func (h *hub) begin(actor policies.Actor, topics []string, since string) *viewer {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return &viewer{gone: true}
	}
	if h.open[actor.User.ID] >= maxViewers {
		return nil
	}
	f := h.follower(actor, h.audience(topics))
	v := &viewer{follower: f}
	changed := h.marks.after(since)
	for i, name := range f.audience.names {
		if changed(name) {
			v.pending |= 1 << i
		}
	}
	f.viewers[v] = true
	h.viewers++
	h.open[f.user]++
	return v
}

// tidy drops a user's streams whose readers have hung up.
func (h *hub) tidy(user int64) {
	for _, v := range h.viewersWhere(func(f *follower) bool { return f.user == user }) {
		if v.left() {
			h.drop(v)
		}
	}
}

// viewersWhere lists the viewers of some followers.
func (h *hub) viewersWhere(which func(*follower) bool) (list []*viewer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, f := range h.followers {
		if which(f) {
			list = slices.AppendSeq(list, maps.Keys(f.viewers))
		}
	}
	return list
}

// audience finds the audience of some topics, or makes it.
func (h *hub) audience(topics []string) *audience {
	names := slices.Compact(slices.Sorted(slices.Values(topics)))
	key := strings.Join(names, "\n")
	if a := h.audiences[key]; a != nil {
		return a
	}
	a := &audience{key: strings.Clone(key), followers: map[*follower]bool{}}
	for i, name := range names {
		name = strings.Clone(name) // the request that it is a part of goes
		t := h.topics[name]
		if t == nil {
			t = &topic{name: name, audiences: map[*audience]topicBits{}}
			h.topics[name] = t
		}
		t.audiences[a] = 1 << i
		a.names, a.topics = append(a.names, t.name), append(a.topics, t)
	}
	h.audiences[key] = a
	return a
}

// follower finds who follows an audience's topics, or adds it.
func (h *hub) follower(actor policies.Actor, a *audience) *follower {
	key := followerKey{audience: a, user: actor.User.ID, epoch: actor.User.SessionEpoch, session: actor.Session}
	f := h.followers[key]
	if f == nil {
		f = &follower{followerKey: key, slot: h.turn, viewers: map[*viewer]bool{}}
		h.turn = (h.turn + 1) % steps
		h.followers[key], a.followers[f] = f, true
	}
	return f
}

// attach gives a stream its line, and sends what there is to tell already.
func (h *hub) attach(v *viewer, l line) {
	ok, err := v.attach(l, h.frame)
	if !ok {
		_ = l.Close() // the stream was ended before it began
	}
	h.keep(v, err)
}

// drop ends a stream.
func (h *hub) drop(v *viewer) {
	h.mu.Lock()
	h.forget(v)
	h.mu.Unlock()
	v.close()
}

// forget removes a viewer and whatever is there for it alone.
func (h *hub) forget(v *viewer) {
	f := v.follower
	if f == nil || !f.viewers[v] {
		return
	}
	delete(f.viewers, v)
	h.viewers--
	if h.open[f.user]--; h.open[f.user] == 0 {
		delete(h.open, f.user)
	}
	if len(f.viewers) > 0 {
		return
	}
	delete(h.followers, f.followerKey)
	a := f.audience
	if delete(a.followers, f); len(a.followers) > 0 {
		return
	}
	delete(h.audiences, a.key)
	delete(h.changed, a)
	for _, t := range a.topics {
		if delete(t.audiences, a); len(t.audiences) == 0 {
			delete(h.topics, t.name)
		}
	}
}

// Revoked ends the streams that hang on one of these ties, unless their
// readers may still follow.
func (h *hub) Revoked(ctx context.Context, ties []string) {
	spread(h.those(func(f *follower) bool { return f.tied(ties) }), func(f *follower) {
		if h.check(ctx, f.actor(), f.audience.names) != nil {
			h.end(func(other *follower) bool { return other == f })
		}
	})
}

// Cut ends all streams; who may still follow asks again.
func (h *hub) Cut() { h.end(func(*follower) bool { return true }) }

// end ends the streams of some followers.
func (h *hub) end(which func(*follower) bool) {
	var ended []*viewer
	h.mu.Lock()
	for _, f := range h.followers {
		if !which(f) {
			continue
		}
		for v := range f.viewers {
			ended = append(ended, v)
			h.forget(v)
		}
	}
	h.mu.Unlock()
	for _, v := range ended {
		v.close()
	}
}

// close ends all streams and the hub's own goroutines.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.Cut()
	h.stop()
	h.running.Wait()
}

// count tells how many streams there are, and how many events were encoded.
func (h *hub) count() (viewers int, encoded int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.viewers, h.encoded
}
