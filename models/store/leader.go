package store

import (
	"context"
	"errors"
	"sync"
	"time"

	"gorm.io/gorm/clause"
)

// Leader is the leader election of one task among several servers.
type Leader struct {
	Name      string `gorm:"primaryKey"`
	Holder    string
	Epoch     int64 // grows with every change of the holder
	ExpiresAt time.Time
}

// ErrFenced means that another server is the leader by now, and that the write
// of the old one must not be committed.
var ErrFenced = errors.New("another server leads by now")

// Lead tries to become, or stay, the leader of a task for ttl. It returns the
// epoch of holder's leadership, or 0 when another holder is the leader.
//
// The clocks of servers may differ: leadership then changes early, or as late as a ttl
// after the last renewal that this server saw, but only the newest epoch can write, see
// [AsLeader].
func (s *Store) Lead(ctx context.Context, name, holder string, ttl time.Duration) (epoch int64, err error) {
	return s.lead(ctx, name, holder, ttl, false)
}

// LeadAlone makes a server the leader that has an exclusive claim on the data, whatever
// the lease of another says. Its own expires at once.
func (s *Store) LeadAlone(ctx context.Context, name, holder string) (epoch int64, err error) {
	return s.lead(ctx, name, holder, 0, true)
}

func (s *Store) lead(ctx context.Context, name, holder string, ttl time.Duration, alone bool) (epoch int64, err error) {
	err = s.InTx(ctx, func(q *Queries) error {
		epoch = 0
		now := q.Now()
		seed := Leader{Name: name, ExpiresAt: now}
		if err := q.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&seed).Error; err != nil {
			return err
		}
		var l Leader
		if err := q.locking("NO KEY UPDATE").Where("name = ?", name).Take(&l).Error; err != nil {
			return err
		}
		if !alone && l.Holder != holder && now.Before(l.ExpiresAt) && s.leases.unchanged(l, s.Elapsed()) <= ttl {
			return nil
		}
		if alone || l.Holder != holder || now.After(l.ExpiresAt) { // also the holder's own expired lease
			l.Epoch++
		}
		l.Holder, l.ExpiresAt, epoch = holder, now.Add(ttl), l.Epoch
		return q.db.Save(&l).Error
	})
	return epoch, err
}

// Resign gives the leadership up at once.
func (s *Store) Resign(ctx context.Context, name, holder string) error {
	return s.InTx(ctx, func(q *Queries) error {
		return q.db.Model(&Leader{}).Where("name = ? AND holder = ?", name, holder).Update("expires_at", time.Unix(0, 0).UTC()).Error
	})
}

// leases are those of leaders, as they were seen, by the epoch and the end.
type leases struct {
	mu   sync.Mutex
	seen sightings[[2]int64]
}

// unchanged is for how long a lease has not been renewed, whatever the clock of its holder says.
func (s *leases) unchanged(l Leader, now time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = sightings[[2]int64]{}
	}
	return s.seen.unchanged(l.Name, [2]int64{l.Epoch, l.ExpiresAt.UnixNano()}, now)
}

// Term is an epoch of the leadership of a task, for which a context works.
type Term struct {
	task  string
	epoch int64
	end   context.CancelFunc
}

type termKey struct{}

// AsLeader returns the context for the work of the leader of a task in an epoch. Every
// transaction in this context and its descendants is fenced: it checks the epoch first
// and fails with ErrFenced when it is no longer the newest. The context then ends.
func AsLeader(ctx context.Context, task string, epoch int64) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	return context.WithValue(ctx, termKey{}, Term{task, epoch, end}), end
}

// termOf is the term that a context works for; the zero value fences nothing.
func termOf(ctx context.Context) Term {
	t, _ := ctx.Value(termKey{}).(Term)
	return t
}

// fence fails with ErrFenced in a term of an older epoch. Otherwise the leader cannot
// change before the transaction has ended.
func (q *Queries) fence(t Term) error {
	if t.task == "" {
		return nil
	}
	var l Leader
	if err := q.locking("SHARE").Where("name = ?", t.task).Take(&l).Error; err != nil {
		return err
	}
	if l.Epoch != t.epoch {
		return ErrFenced
	}
	return nil
}
