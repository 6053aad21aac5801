package store

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"gorm.io/gorm"

	"weir/models"
)

// InTx runs fn in one transaction. After a deadlock or a serialisation failure
// fn runs again, so it must have no effect outside the database. After the
// commit the listeners get the topics that changed. Revocations are applied in
// this process when InTx returns; see also [Store.InRevokingTx]. In the context of a
// leader the transaction is fenced, see [AsLeader].
func (s *Store) InTx(ctx context.Context, fn func(*Queries) error) error {
	_, err := s.inTx(ctx, fn)
	return err
}

// inTx is InTx; it also returns the number of the transaction's revocation.
func (s *Store) inTx(ctx context.Context, fn func(*Queries) error) (revocation int64, err error) {
	if s.snapshot(ctx) != nil {
		return 0, errors.New("a snapshot is for reading only")
	}
	const attempts = 8
	term := termOf(ctx)
	for try := 1; ; try++ {
		q := &Queries{postgres: s.dialect == "postgres", clock: s.Clock, mail: s.Mail, topics: map[string]bool{}, origin: s.origin}
		committing := false
		err := s.write.WithContext(s.withSecrets(ctx)).Transaction(func(tx *gorm.DB) error {
			q.db = tx
			err := q.fence(term)
			if err == nil {
				err = fn(q)
			}
			for _, record := range []func() error{q.incrementPoolVersion, q.recordHistory, q.recordAudit, q.recordRevocation, q.notifyServers} {
				if err == nil {
					err = record()
				}
			}
			committing = err == nil
			return err
		})
		if committing {
			s.applyRevocations(ctx, slices.Collect(maps.Keys(q.revoked)))
		}
		if committing && err != nil { // the database may commit yet
			s.uncertainUntil.Store(int64(s.Elapsed() + MaxCacheAge))
		}
		if err == nil {
			s.logCommitted(ctx, q)
			s.notified.add(q.notified)
			s.Publish(slices.Collect(maps.Keys(q.topics))...)
			return q.revocation, nil
		}
		if errors.Is(err, ErrFenced) {
			term.end()
		}
		if gone := ctx.Err(); gone != nil && !errors.Is(err, gone) { // a connection says only that its time is over
			err = errors.Join(gone, err)
		}
		if !retryable(err) || try == attempts || ctx.Err() != nil {
			return 0, s.ofSpace(err)
		}
		if !models.Sleep(ctx, time.Duration(rand.Int64N(int64(try)*int64(10*time.Millisecond)))) {
			return 0, ctx.Err()
		}
	}
}

func retryable(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "40001" || pg.Code == "40P01"
	}
	lite, ok := errors.AsType[sqlite3.Error](err)
	return ok && (lite.Code == sqlite3.ErrBusy || lite.Code == sqlite3.ErrLocked)
}

// InRevokingTx is InTx for transactions that may take rights away: when it
// returns they are gone on every server, from open connections too. It does
// not wait when nothing was revoked or there is no other server. With
// [WithIdempotencyKey], a request is carried out once.
func (s *Store) InRevokingTx(ctx context.Context, fn func(*Queries) error) error {
	key := idempotencyKeyOf(ctx)
	number, err := s.inTx(ctx, func(q *Queries) error {
		if err := q.claim(key); err != nil {
			return err
		}
		err := fn(q)
		if key != nil {
			models.Failpoint("request.applied")
		}
		return err
	})
	if err == nil {
		KeyClaimed(ctx)
	}
	if err != nil || number == 0 {
		return err
	}
	return s.waitForServers(ctx, number)
}

// InSnapshot runs fn with a context in which everything that is read from s sees one
// state of the database, whichever service reads it. It takes no locks and waits for
// none. In it a [Cache] has nothing of another time, and [Store.InTx] fails: a second
// connection may never come free while each of many readers keeps one. For that reason,
// too, snapshots have half of the connections at most; others wait until one ends, or for
// the end of ctx. fn reads in one goroutine.
func (s *Store) InSnapshot(ctx context.Context, fn func(context.Context) error) error {
	if s.snapshot(ctx) != nil {
		return fn(ctx)
	}
	select {
	case s.snapshots <- struct{}{}:
		defer func() { <-s.snapshots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	return s.reader(ctx).Transaction(func(tx *gorm.DB) error {
		return fn(context.WithValue(ctx, snapshotKey{s}, &snapshot{tx: tx, cached: map[any]any{}}))
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// Snapshot is InSnapshot for queries; fn must not write.
func (s *Store) Snapshot(ctx context.Context, fn func(*Queries) error) error {
	return s.InSnapshot(ctx, func(ctx context.Context) error { return fn(s.Read(ctx)) })
}
