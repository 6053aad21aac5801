package models

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm/clause"
)

// Leader is who leads one piece of work among several servers.
type Leader struct {
	Name      string `gorm:"primaryKey"`
	Holder    string
	Epoch     int64 // counts the leaders
	ExpiresAt time.Time
}

// ErrFenced says that another server leads by now: what the old leader meant
// to write must not be written.
var ErrFenced = errors.New("another server leads by now")

// Lead tries to become, or stay, the leader of a piece of work until ttl from
// now. It returns the epoch under which holder leads, or 0 when somebody else
// does.
//
// Servers' clocks may differ: that can change leaders early or late, but only
// the newest epoch can write, see [Queries.Fence].
func (s *Store) Lead(ctx context.Context, name, holder string, ttl time.Duration) (epoch int64, err error) {
	err = s.InTx(ctx, func(q *Queries) error {
		epoch = 0
		now := q.Now()
		seed := Leader{Name: name, ExpiresAt: now}
		if err := q.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&seed).Error; err != nil {
			return err
		}
		var l Leader
		if err := q.lockRows("SELECT epoch FROM leaders WHERE name = ? FOR NO KEY UPDATE", name); err != nil {
			return err
		}
		if err := q.db.Where("name = ?", name).Take(&l).Error; err != nil {
			return err
		}
		if l.Holder != holder && now.Before(l.ExpiresAt) {
			return nil
		}
		if l.Holder != holder || now.After(l.ExpiresAt) { // also one's own lease that had run out
			l.Epoch++
		}
		l.Holder, l.ExpiresAt, epoch = holder, now.Add(ttl), l.Epoch
		return q.db.Save(&l).Error
	})
	return epoch, err
}

// Resign lets another lead at once.
func (s *Store) Resign(ctx context.Context, name, holder string) error {
	return s.InTx(ctx, func(q *Queries) error {
		return q.db.Model(&Leader{}).Where("name = ? AND holder = ?", name, holder).Update("expires_at", q.Now().Add(-time.Microsecond)).Error
	})
}

// Fence keeps a transaction from being committed by a leader of an older
// epoch: it fails with ErrFenced, and nobody else comes to lead before the
// transaction has ended.
func (q *Queries) Fence(name string, epoch int64) error {
	var l Leader
	if err := q.lockRows("SELECT epoch FROM leaders WHERE name = ? FOR SHARE", name); err != nil {
		return err
	}
	if err := q.db.Where("name = ?", name).Take(&l).Error; err != nil {
		return err
	}
	if l.Epoch != epoch {
		return ErrFenced
	}
	return nil
}
