package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"gorm.io/gorm"
)

// Store is the database. On SQLite there is one writer and a pool of readers;
// on PostgreSQL both are one pool.
type Store struct {
	write, read *gorm.DB
	probe       *sql.DB // of Ping
	dialect     string

	// Clock is the one source of time for everything that the store's users
	// decide and record. Replace it before use.
	Clock func() time.Time

	// Elapsed is a clock that cannot be set, for leases. Replace it before use.
	Elapsed func() time.Duration

	// Secrets encrypts those of workspaces and deployments; nil: not. Set it before use.
	Secrets Secrets

	// Mail makes [Queries.Notify] queue e-mail. Set it before use.
	Mail bool

	log       *slog.Logger // of LogTo
	origin    string       // identifies this process among the servers
	listening atomic.Bool  // changes of other servers are received
	changes   changes
	notified  notifiedCounts
	lease     atomic.Pointer[ServerLease] // nil before Join
	leases    leases                      // of leaders

	space     space
	snapshots chan struct{} // those that are open
	// uncertainUntil is how long, in Store.Elapsed, a transaction of this server may
	// commit that it takes for failed.
	uncertainUntil atomic.Int64

	mu                  sync.RWMutex
	listeners           []func(topics []string)
	revocationListeners []RevocationListener
}

// RevocationListener has connections that stay open. The rights of each depend on
// revocation keys, written like topics: "user:7", "session:…" with the hash of
// the portal session or access token, "project:3", "workspace:5".
type RevocationListener interface {
	// Revoked checks the connections with one of these keys again and closes
	// those that would not be admitted now. When it returns these pass nothing
	// more, and connections that were just being admitted are checked again.
	// Connections that cannot be checked before ctx ends are closed.
	Revoked(ctx context.Context, keys []string)
	// Cut closes all connections, including those just being admitted.
	Cut()
}

// Dialect is "sqlite" or "postgres".
func (s *Store) Dialect() string { return s.dialect }

// SQL is the writing connection, for migrations.
func (s *Store) SQL() (*sql.DB, error) { return s.write.DB() }

// Ping checks whether the database answers a query, on SQLite from its file: the driver answers a
// ping without one.
func (s *Store) Ping(ctx context.Context) error {
	var version int64
	return s.probe.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version").Scan(&version)
}

// connection takes a connection out of the pool.
func (s *Store) connection(ctx context.Context) (*sql.Conn, error) {
	db, err := s.write.DB()
	if err != nil {
		return nil, err
	}
	return db.Conn(ctx)
}

// discard closes a connection instead of returning it to the pool.
func discard(conn *sql.Conn) error {
	err := conn.Raw(func(any) error { return driver.ErrBadConn })
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return nil
	}
	return err
}

// Close ends all connections.
func (s *Store) Close() error {
	errs := []error{s.probe.Close()}
	for _, g := range []*gorm.DB{s.read, s.write} {
		db, err := g.DB()
		if err == nil {
			err = db.Close()
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// OnChange registers a listener that gets, after each commit, the topics that
// the transaction changed. Listeners must return at once.
func (s *Store) OnChange(listener func(topics []string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
}

// OnRevoke registers a listener for revocations, before anything is served.
func (s *Store) OnRevoke(listener RevocationListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revocationListeners = append(s.revocationListeners, listener)
}

// Publish tells the followers on this server of topics that have changed, also outside the database.
func (s *Store) Publish(topics ...string) {
	if len(topics) == 0 {
		return
	}
	s.changes.addTopics(topics)
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, l := range s.listeners {
		l(topics)
	}
}

// Now is the clock's time in the precision of both databases: UTC, microseconds.
func (s *Store) Now() time.Time { return instant(s.Clock) }

func instant(clock func() time.Time) time.Time { return clock().UTC().Truncate(time.Microsecond) }
