package policies

import (
	"sync"
	"time"
)

// failures slows the guessing of passwords down: few tries for an address
// from one client, more for it from all together. So nobody is locked out by
// a stranger who fails in their name, until many strangers do.
type failures struct {
	mu   sync.Mutex
	seen map[[2]string][]time.Time // by address and client; client "*" is all of them
}

const (
	failureWindow      = 15 * time.Minute
	failureLimit       = 10  // from one client
	failureLimitForAll = 100 // from all clients
	failureKeys        = 100_000
)

const everyClient = "*"

// try counts a try before it is made, so that many at once count as many, and
// tells how long client must wait instead; 0 is not at all. A try that
// succeeds is taken back by clear.
func (f *failures) try(email, client string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	own, all := [2]string{email, client}, [2]string{email, everyClient}
	if wait := max(f.until(own, failureLimit, now), f.until(all, failureLimitForAll, now)); wait > 0 {
		return wait
	}
	if f.seen == nil {
		f.seen = map[[2]string][]time.Time{}
	}
	if len(f.seen) >= failureKeys {
		f.forget(now)
	}
	f.seen[own] = append(f.recent(own, now), now)
	f.seen[all] = append(f.recent(all, now), now)
	return 0
}

func (f *failures) until(key [2]string, limit int, now time.Time) time.Duration {
	recent := f.recent(key, now)
	if len(recent) < limit {
		return 0
	}
	return recent[len(recent)-limit].Add(failureWindow).Sub(now)
}

// forget drops what no longer counts; should all of it still count, it drops
// everything: memory is bounded, whoever fails.
func (f *failures) forget(now time.Time) {
	for key := range f.seen {
		if len(f.recent(key, now)) == 0 {
			delete(f.seen, key)
		}
	}
	if len(f.seen) >= failureKeys {
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
	for len(all) > 0 && now.Sub(all[0]) >= failureWindow {
		all = all[1:]
	}
	return all
}
