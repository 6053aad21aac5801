package store

import (
	"context"
	"time"

	"gorm.io/gorm/clause"
)

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
