package policies

import (
	"cmp"
	"container/list"
	"net/netip"
	"slices"
	"sync"
	"time"

	"weir/models"
)

// failures rate-limits attempts, such as the guessing of passwords: few for an address
// from one client, more from all clients together, so that a single client cannot lock
// out the owner of an account; and more from one client for all addresses together.
type failures struct {
	window time.Duration // 0: failureWindow
	// full refuses new keys when there are too many. Otherwise those with the oldest
	// attempts are forgotten, so that nobody can keep others from signing in.
	full bool

	mu    sync.Mutex
	seen  map[[2]string]*list.Element // of attempts, by address and client; "*" stands for all
	order list.List                   // the longest without an attempt first
}

// attempts are those of a key, the oldest first.
type attempts struct {
	key [2]string
	at  []time.Time
}

// bound is the number of attempts that a key may have in the window.
type bound struct {
	key   [2]string
	limit int
}

const (
	failureWindow         = 15 * time.Minute
	failureLimit          = 10  // from one client
	failureLimitForAll    = 100 // from all clients
	failureLimitOfClients = 100 // from one client, for all addresses
	failureKeys           = 100_000
)

const everyClient, everyAddress = "*", "*"

// boundsOf are those of signing in; the first is of the client itself. Where the client is not
// known, only its address counts, and of a known device only what it tries itself: strangers
// cannot lock it out.
func boundsOf(email, client, device string) []bound {
	if device != "" {
		return []bound{{[2]string{email, "device " + device}, failureLimit}}
	}
	list := []bound{{[2]string{email, client}, failureLimit}, {[2]string{email, everyClient}, failureLimitForAll}}
	if client != "" {
		list = append(list, bound{[2]string{everyAddress, client}, failureLimitOfClients})
	}
	return list
}

// take counts an attempt under all bounds before it is made, so that concurrent attempts count, or
// under none and returns how long to wait. Clear removes the attempts after a success.
func (f *failures) take(now time.Time, bounds ...bound) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bounds {
		if at := f.recent(b.key, now); len(at) >= b.limit {
			wait = max(wait, at[len(at)-b.limit].Add(f.length()).Sub(now))
		}
	}
	if wait > 0 {
		return wait
	}
	f.prune(now)
	if len(f.seen) >= failureKeys && slices.ContainsFunc(bounds, func(b bound) bool { return f.seen[b.key] == nil }) {
		return f.length()
	}
	for _, b := range bounds {
		f.add(b.key, now)
	}
	return 0
}

func (f *failures) add(key [2]string, now time.Time) {
	if f.seen == nil {
		f.seen = map[[2]string]*list.Element{}
	}
	at := append(f.recent(key, now), now)
	if e, ok := f.seen[key]; ok {
		e.Value.(*attempts).at = at
		f.order.MoveToBack(e)
		return
	}
	f.seen[key] = f.order.PushBack(&attempts{key, at})
}

func tooManyAttempts(wait time.Duration) error {
	return models.RateLimited(wait, "Too many failed attempts. Try again in %d minutes.", int64(wait/time.Minute)+1)
}

func (f *failures) length() time.Duration { return cmp.Or(f.window, failureWindow) }

// network is the client of an address: a client of IPv6 has a network of them.
func network(address string) string {
	if ip, err := netip.ParseAddr(address); err == nil && ip.Is6() && !ip.Is4In6() {
		if p, err := ip.WithZone("").Prefix(64); err == nil {
			return p.String()
		}
	}
	return address
}

// prune removes the keys whose attempts have expired, and the oldest when there are too
// many unless f is full then: memory is bounded.
func (f *failures) prune(now time.Time) {
	for e := f.order.Front(); e != nil; e = f.order.Front() {
		key := e.Value.(*attempts).key
		if len(f.recent(key, now)) > 0 && (f.full || len(f.seen) < failureKeys) {
			return
		}
		f.forget(e)
	}
}

func (f *failures) forget(e *list.Element) {
	delete(f.seen, e.Value.(*attempts).key)
	f.order.Remove(e)
}

// clear forgets all attempts under the first bound and one under each other.
func (f *failures) clear(bounds ...bound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if e, ok := f.seen[bounds[0].key]; ok {
		f.forget(e)
	}
	for _, b := range bounds[1:] {
		f.drop(b.key)
	}
}

// undo forgets an attempt that was not made.
func (f *failures) undo(bounds ...bound) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bounds {
		f.drop(b.key)
	}
}

// drop forgets the latest attempt of a key, and a key without attempts: it would count as one
// of those that are too many.
func (f *failures) drop(key [2]string) {
	e, ok := f.seen[key]
	if !ok {
		return
	}
	if a := e.Value.(*attempts); len(a.at) > 1 {
		a.at = a.at[:len(a.at)-1]
	} else {
		f.forget(e)
	}
}

func (f *failures) recent(key [2]string, now time.Time) []time.Time {
	e, ok := f.seen[key]
	if !ok {
		return nil
	}
	all := e.Value.(*attempts).at
	for len(all) > 0 && now.Sub(all[0]) >= f.length() {
		all = all[1:]
	}
	return all
}
