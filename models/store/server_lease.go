package store

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

const (
	leaseTime         = 6 * time.Second         // how long a server can send after a heartbeat
	evictAfter        = 8 * time.Second         // without a heartbeat, the other servers evict a server
	heartbeatInterval = 1500 * time.Millisecond // between heartbeats
	pollInterval      = 100 * time.Millisecond  // between polls while LISTEN does not work
	solePollInterval  = 250 * time.Millisecond  // the same for a sole server: commands may change its database
)

// Server is a server with a lease.
type Server struct {
	ID        string `gorm:"primaryKey"`
	Heartbeat int64  // grows as long as the server runs
	Applied   int64  // number of the last revocation that it has applied
}

// ServerLease is the lease of this process among the servers of one portal. While it
// is valid, revocations of other servers are applied here before their calls
// return.
//
// The lease expires without heartbeats. No clocks are compared: this server
// stops at the end of leaseTime after its last heartbeat, and the others evict
// it later, evictAfter they saw that heartbeat.
type ServerLease struct {
	store     *Store
	sole      bool
	wake      chan struct{}
	expiresAt atomic.Int64 // in nanoseconds of Store.Elapsed

	// polledUntil is leaseTime after the last tick of Run, in the same; before Run
	// it does not matter.
	polledUntil atomic.Int64

	running sync.Mutex // locked while Run runs
	// Used by Run only:
	registered         bool // the row exists, unless this server was evicted
	heartbeat, applied int64
	otherServers       heartbeats
	failing            bool // the last tick failed
}

// Join acquires a lease, before anything is served. The sole server of a
// database (by its file, or by its claim) needs none: its lease never expires.
func (s *Store) Join(ctx context.Context, sole bool) (*ServerLease, error) {
	l := &ServerLease{store: s, sole: sole, wake: make(chan struct{}, 1), otherServers: heartbeats{}}
	if sole {
		if err := s.write.WithContext(ctx).Where("id <> ?", s.origin).Delete(&Server{}).Error; err != nil {
			return nil, err
		}
	}
	s.OnChange(func(topics []string) {
		if slices.Contains(topics, revocationsTopic) || slices.Contains(topics, AllTopics) {
			l.poll()
		}
	})
	l.polledUntil.Store(math.MaxInt64)
	s.lease.Store(l)
	return l, l.acquire(s.write.WithContext(ctx))
}

// mayUseCaches reports whether this server has a valid lease and has lately looked for
// revocations. A sole server's lease does not expire, but a command may have changed its
// database while it was paused.
func (s *Store) mayUseCaches() bool {
	l := s.lease.Load()
	return l != nil && l.Holds() && s.Elapsed() < time.Duration(l.polledUntil.Load())
}

// receivesTopics reports whether the changes of other servers arrive here.
func (s *Store) receivesTopics() bool {
	l := s.lease.Load()
	return l != nil && (l.sole || s.listening.Load())
}

// Holds reports whether the lease is valid: bytes may be passed on now. It is
// cheap enough to be called for each piece.
func (l *ServerLease) Holds() bool { return l.remaining() > 0 }

func (l *ServerLease) remaining() time.Duration {
	return time.Duration(l.expiresAt.Load()) - l.store.Elapsed()
}

// poll makes Run look for revocations at once.
func (l *ServerLease) poll() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// acquire registers the server, perhaps again. It closes what was open before:
// revocations may have been missed meanwhile.
func (l *ServerLease) acquire(db *gorm.DB) error {
	sent := l.store.Elapsed()
	l.heartbeat++ // must differ from the last one, or the others see no sign of life
	err := db.Transaction(func(tx *gorm.DB) error {
		if err := tx.Raw("SELECT COALESCE(MAX(number), 0) FROM revocations").Scan(&l.applied).Error; err != nil {
			return err
		}
		return tx.Save(&Server{ID: l.store.origin, Heartbeat: l.heartbeat, Applied: l.applied}).Error
	})
	if l.registered = err == nil; l.registered {
		l.store.cutAll()
		l.extend(sent)
	}
	return err
}

// extend renews the lease from the moment before the heartbeat was sent.
func (l *ServerLease) extend(sent time.Duration) {
	if l.sole {
		l.expiresAt.Store(math.MaxInt64)
		return
	}
	l.expiresAt.Store(int64(sent + leaseTime))
}

// Run renews the lease and applies revocations of other servers until ctx
// ends. It calls onError once when that begins to fail.
func (l *ServerLease) Run(ctx context.Context, onError func(error)) {
	l.running.Lock()
	defer l.running.Unlock()
	var expiry sync.WaitGroup
	defer expiry.Wait()
	expiry.Go(func() { l.watchExpiry(ctx) })
	for ctx.Err() == nil {
		err := l.store.onOwnConnection(ctx, l.sole, func(db *gorm.DB) error { return l.tickUntilError(ctx, db) })
		if err != nil && ctx.Err() == nil && !l.failing {
			onError(err)
		}
		l.failing = true
		l.waitForNextTick(ctx)
	}
}

func (l *ServerLease) tickUntilError(ctx context.Context, db *gorm.DB) error {
	for ctx.Err() == nil {
		if err := l.tick(ctx, db); err != nil {
			return err
		}
		l.failing = false
		l.waitForNextTick(ctx)
	}
	return nil
}

func (l *ServerLease) waitForNextTick(ctx context.Context) {
	interval := pollInterval
	switch {
	case l.failing:
	case l.store.listening.Load():
		interval = heartbeatInterval
	case l.sole:
		interval = solePollInterval
	}
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-time.After(interval):
	}
}

// tick applies new revocations and reports them with a heartbeat.
func (l *ServerLease) tick(ctx context.Context, db *gorm.DB) error {
	ctx, cancel := context.WithTimeout(ctx, leaseTime/2)
	defer cancel()
	db = db.WithContext(ctx)
	if !l.registered {
		return l.acquire(db)
	}
	began := l.store.Elapsed()
	var list []Revocation
	if err := db.Where("number > ?", l.applied).Order("number").Find(&list).Error; err != nil {
		return err
	}
	var keys []string
	for _, r := range list {
		own := r.Origin == l.store.origin && began >= time.Duration(l.store.uncertainUntil.Load())
		if l.applied = r.Number; !own { // its own were applied at commit
			keys = append(keys, strings.Fields(r.Keys)...)
		}
	}
	l.store.applyRevocations(ctx, keys)
	if l.sole && len(keys) == 0 { // no other server waits for a heartbeat
		var n int64
		if err := db.Model(&Server{}).Where("id = ?", l.store.origin).Count(&n).Error; err != nil {
			return err
		}
		if l.registered = n > 0; !l.registered { // a command has evicted it
			return l.acquire(db)
		}
	} else if err := l.sendHeartbeat(db); err != nil {
		return err
	}
	l.polledUntil.Store(int64(began + leaseTime))
	return nil
}

// sendHeartbeat renews the lease and evicts servers without heartbeats.
func (l *ServerLease) sendHeartbeat(db *gorm.DB) error {
	sent := l.store.Elapsed()
	l.heartbeat++
	res := db.Model(&Server{}).Where("id = ?", l.store.origin).Updates(map[string]any{"heartbeat": l.heartbeat, "applied": l.applied})
	if res.Error != nil {
		return res.Error
	}
	if res.RowsAffected == 0 { // evicted
		l.registered = false
		return l.acquire(db)
	}
	l.extend(sent)
	others, err := serversBehind(db, l.store.origin, math.MaxInt64)
	if err != nil || l.sole {
		return err
	}
	return evict(db, expired(l.otherServers, others, l.store.Elapsed()))
}

// watchExpiry closes all open connections when the lease has expired.
func (l *ServerLease) watchExpiry(ctx context.Context) {
	for ctx.Err() == nil {
		remaining := l.remaining()
		if remaining <= 0 {
			l.store.cutAll()
			remaining = pollInterval
		}
		models.Sleep(ctx, min(remaining, pollInterval))
	}
}

// Leave releases the lease, so that no other server waits for this one. The
// context of Run must have ended, and no connection may be open any more.
func (l *ServerLease) Leave(ctx context.Context) error {
	l.running.Lock()
	defer l.running.Unlock()
	l.expiresAt.Store(0)
	return l.store.write.WithContext(ctx).Where("id = ?", l.store.origin).Delete(&Server{}).Error
}

// onOwnConnection runs fn on a separate connection: heartbeats must not wait for
// requests. A sole server has one writing connection only.
func (s *Store) onOwnConnection(ctx context.Context, sole bool, fn func(*gorm.DB) error) error {
	if sole {
		return fn(s.write.WithContext(ctx))
	}
	return s.write.WithContext(ctx).Connection(fn)
}

// waitForServers returns when every other server has applied a revocation or
// was evicted.
func (s *Store) waitForServers(ctx context.Context, number int64) error {
	const first, longest = time.Millisecond, 20 * time.Millisecond
	otherServers, began := heartbeats{}, s.Elapsed()
	for pause := first; ; pause = min(2*pause, longest) {
		behind, err := serversBehind(s.read.WithContext(ctx), s.origin, number)
		if err == nil && len(behind) > 0 {
			err = evict(s.write.WithContext(ctx), expired(otherServers, behind, s.Elapsed()))
		} else if err == nil {
			return nil
		}
		if err != nil && (ctx.Err() != nil || s.Elapsed()-began > 2*evictAfter) {
			return models.Unavailable(err, "The change was saved, but some portal servers may still have open connections. They are closed within %d seconds.",
				int64(evictAfter/time.Second))
		}
		models.Sleep(ctx, pause)
	}
}

// serversBehind lists the other servers that have not applied a revocation yet.
func serversBehind(db *gorm.DB, origin string, number int64) (list []Server, err error) {
	return list, db.Where("id <> ? AND applied < ?", origin, number).Find(&list).Error
}

// evict removes servers, unless they have sent a heartbeat after all.
func evict(db *gorm.DB, servers []Server) error {
	var errs []error
	for _, v := range servers {
		errs = append(errs, db.Where("id = ? AND heartbeat = ?", v.ID, v.Heartbeat).Delete(&Server{}).Error)
	}
	return errors.Join(errs...)
}

// heartbeats are those of servers.
type heartbeats = sightings[int64]

// expired returns the servers whose heartbeat has not changed for longer than
// evictAfter.
func expired(h heartbeats, list []Server, now time.Duration) (expired []Server) {
	for _, v := range list {
		if h.unchanged(v.ID, v.Heartbeat, now) > evictAfter {
			expired = append(expired, v)
		}
	}
	for id := range h {
		if !slices.ContainsFunc(list, func(v Server) bool { return v.ID == id }) {
			delete(h, id)
		}
	}
	return expired
}
