package live

import (
	"slices"
	"strings"

	"weir/models"
	"weir/policies"
)

// follower is who follows some topics, perhaps in several windows. What one
// may see is checked once for them all.
type follower struct {
	followerKey
	topics  []string // sorted
	slot    int      // the step of a beat in which it is looked after
	streams map[*Stream]bool
}

type followerKey struct {
	user, epoch     int64
	session, topics string
}

// hangsOn tells whether the follower's rights hang on one of some revocation
// keys; see [models.RevocationListener].
func (f *follower) hangsOn(keys []string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		return key == models.RevocationKey("user", f.user) || key == models.SessionKey(f.session) || slices.Contains(f.topics, key)
	})
}

// actor is as much of the follower as is needed to ask for its rights.
func (f *follower) actor() policies.Actor {
	return policies.Actor{User: models.User{ID: f.user, SessionEpoch: f.epoch}, Session: f.session}
}

// follower finds who follows some topics, or adds it.
func (h *Hub) follower(actor policies.Actor, topics []string) *follower {
	topics = slices.Compact(slices.Sorted(slices.Values(topics)))
	all := strings.Join(topics, "\n") // of its own: the request that the topics are parts of goes
	key := followerKey{user: actor.User.ID, epoch: actor.User.SessionEpoch, session: actor.Session, topics: all}
	f := h.followers[key]
	if f == nil {
		f = &follower{followerKey: key, topics: strings.Split(all, "\n"), slot: h.turn, streams: map[*Stream]bool{}}
		h.turn = (h.turn + 1) % steps
		h.followers[key] = f
		for _, topic := range f.topics {
			if h.topics[topic] == nil {
				h.topics[topic] = map[*follower]bool{}
			}
			h.topics[topic][f] = true
		}
	}
	return f
}

// forget removes a stream and whatever is there for it alone.
func (h *Hub) forget(s *Stream) {
	f := s.follower
	delete(f.streams, s)
	h.open--
	if h.openOf[f.user]--; h.openOf[f.user] == 0 {
		delete(h.openOf, f.user)
	}
	if len(f.streams) > 0 {
		return
	}
	delete(h.followers, f.followerKey)
	for _, topic := range f.topics {
		if delete(h.topics[topic], f); len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
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
