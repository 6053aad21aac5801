package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"weir/models"
)

// databaseLockKey is an arbitrary number that all servers of Weir share.
const databaseLockKey = 0x77656972 // "weir"

var errInUse = errors.New("another weir serves from this database already")

// LockDatabase locks a PostgreSQL database for one server: the server of another
// machine would treat workspaces that run as local processes as missing. The lock ends
// when it is closed or its connection breaks; see [DatabaseLock.Holds]. A SQLite file is
// locked by the lock of its directory.
func (s *Store) LockDatabase(ctx context.Context) (*DatabaseLock, error) {
	if s.dialect != "postgres" {
		return &DatabaseLock{}, nil
	}
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	if err := acquireLock(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &DatabaseLock{conn: conn}, nil
}

// CheckUnused returns an error if servers without a claim on the database, those of a cluster,
// use it: their heartbeats go on. That takes some seconds if there are any, or were.
func (s *Store) CheckUnused(ctx context.Context) error {
	if !s.write.Migrator().HasTable(&Server{}) { // a new database
		return nil
	}
	var before, after []Server
	if err := s.write.WithContext(ctx).Find(&before).Error; err != nil || len(before) == 0 {
		return err
	}
	if !models.Sleep(ctx, 2*heartbeatInterval) {
		return ctx.Err()
	}
	if err := s.write.WithContext(ctx).Find(&after).Error; err != nil {
		return err
	}
	for _, server := range after {
		if !slices.Contains(before, server) { // it is another, or has another heartbeat
			return errInUse
		}
	}
	return nil
}

// acquireLock retries for some seconds: PostgreSQL does not detect at once that
// the connection of a killed server is closed.
func acquireLock(ctx context.Context, conn *sql.Conn) error {
	const timeout, pause = 10 * time.Second, 100 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		var acquired bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", databaseLockKey).Scan(&acquired); err != nil || acquired {
			return err
		}
		if waited >= timeout {
			return errInUse
		}
		if !models.Sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// DatabaseLock is the exclusive use of a database.
type DatabaseLock struct{ conn *sql.Conn }

// Holds returns an error when the connection of the lock is broken.
func (l *DatabaseLock) Holds(ctx context.Context) error {
	if l.conn == nil {
		return nil
	}
	return l.conn.PingContext(ctx)
}

// Close releases the lock. It closes the connection, which in the pool would
// still have the lock.
func (l *DatabaseLock) Close() error {
	if l.conn == nil {
		return nil
	}
	return discard(l.conn)
}
