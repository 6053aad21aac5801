package policies

import (
	"cmp"
	"net/netip"
	"sync"
	"time"

	"weir/models"
)

// failures rate-limits attempts, such as the guessing of passwords: few for an address
// from one client, more from all clients together. So a single client cannot lock
// out the owner of an account.
type failures struct {
	window time.Duration // 0: failureWindow
	// full refuses new keys when there are too many. Otherwise all are forgotten, so that
	// nobody can keep others from signing in.
	full bool

	mu   sync.Mutex
	seen map[[2]string][]time.Time // by address and client; "*" stands for all
}

// bound is the number of attempts that a key may have in the window.
type bound struct {
	key   [2]string
	limit int
}

const (
	failureWindow      = 15 * time.Minute
	failureLimit       = 10  // from one client
	failureLimitForAll = 100 // from all clients
	failureKeys        = 100_000
)

const everyClient, everyAddress = "*", "*"

// try counts an attempt before it is made, so that concurrent attempts count, or
// returns how long client must wait. Clear removes the attempts after a success.
func (f *failures) try(email, client string, now time.Time) time.Duration {
	return f.take(now, bound{[2]string{email, client}, failureLimit}, bound{[2]string{email, everyClient}, failureLimitForAll})
}

// take counts an attempt under all bounds, or under none and returns how long to wait.
func (f *failures) take(now time.Time, bounds ...bound) (wait time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, b := range bounds {
		wait = max(wait, f.until(b.key, b.limit, now))
	}
	if wait > 0 {
		return wait
	}
	if f.seen == nil {
		f.seen = map[[2]string][]time.Time{}
	}
	if len(f.seen) >= failureKeys {
		f.prune(now)
	}
	if len(f.seen) >= failureKeys {
		return failureWindow
	}
	for _, b := range bounds {
		f.seen[b.key] = append(f.recent(b.key, now), now)
	}
	return 0
}

func tooManyAttempts(wait time.Duration) error {
	return models.RateLimited(wait, "Too many failed attempts. Try again in %d minutes.", int64(wait/time.Minute)+1)
}

func (f *failures) until(key [2]string, limit int, now time.Time) time.Duration {
	recent := f.recent(key, now)
	if len(recent) < limit {
		return 0
	}
	return recent[len(recent)-limit].Add(f.length()).Sub(now)
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

// prune removes expired attempts, and all of them when few have expired unless f is full
// then: memory is bounded.
func (f *failures) prune(now time.Time) {
	for key := range f.seen {
		if len(f.recent(key, now)) == 0 {
			delete(f.seen, key)
		}
	}
	if len(f.seen) >= failureKeys && !f.full {
		clear(f.seen)
	}
}

func (f *failures) clear(email, client string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.seen, [2]string{email, client})
	if all := f.seen[[2]string{email, everyClient}]; len(all) > 0 {
		f.seen[[2]string{email, everyClient}] = all[:len(all)-1]
	}
}

func (f *failures) recent(key [2]string, now time.Time) []time.Time {
	all := f.seen[key]
	for len(all) > 0 && now.Sub(all[0]) >= f.length() {
		all = all[1:]
	}
	return all
}
