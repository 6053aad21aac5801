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

// wait tells how long client must wait before it tries the address again; 0
// is not at all.
func (f *failures) wait(email, client string, now time.Time) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.until([2]string{email, client}, failureLimit, now), f.until([2]string{email, everyClient}, failureLimitForAll, now))
}

func (f *failures) until(key [2]string, limit int, now time.Time) time.Duration {
	recent := f.recent(key, now)
	if len(recent) < limit {
		return 0
	}
	return recent[len(recent)-limit].Add(failureWindow).Sub(now)
}

func (f *failures) add(email, client string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.seen == nil {
		f.seen = map[[2]string][]time.Time{}
	}
	if len(f.seen) >= failureKeys {
		f.forget(now)
	}
	for _, key := range [][2]string{{email, client}, {email, everyClient}} {
		if recent := f.recent(key, now); len(recent) < failureLimitForAll {
			f.seen[key] = append(recent, now)
		}
	}
}

// forget drops what no longer counts, and everything when all of it does:
// memory is bounded, whoever fails.
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
}

func (f *failures) recent(key [2]string, now time.Time) []time.Time {
	all := f.seen[key]
	for len(all) > 0 && now.Sub(all[0]) >= failureWindow {
		all = all[1:]
	}
	return all
}
