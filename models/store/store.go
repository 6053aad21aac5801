package store

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/mattn/go-sqlite3"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"
	"gorm.io/gorm/schema"

	"weir/models"
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

// Connections at most, of PostgreSQL for all, of SQLite for reading.
const (
	postgresConnections = 20
	sqliteReaders       = 8
)

// Open connects to databaseURL (postgres://…), or, when that is empty, to
// SQLite in the file at path, which it creates with its directory.
func Open(ctx context.Context, databaseURL, path string) (*Store, error) {
	s := &Store{dialect: "sqlite", Clock: time.Now, Elapsed: elapsed, origin: strconv.FormatUint(rand.Uint64(), 36),
		space: space{free: freeSpace}}
	var err error
	if databaseURL != "" {
		s.dialect = "postgres"
		s.write, err = open(postgres.New(postgres.Config{DSN: databaseURL,
			OptionOpenDB: []stdlib.OptionOpenDB{stdlib.OptionAfterConnect(limitIdleTransactions)}}), postgresConnections)
		s.read, s.snapshots = s.write, make(chan struct{}, postgresConnections/2)
	} else {
		err = s.openSQLite(path)
	}
	if err != nil {
		return nil, err
	}
	db, err := s.write.DB()
	if err == nil {
		s.probe = cmp.Or(s.probe, db)
		err = db.PingContext(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reach the %s database: %w", s.dialect, err)
	}
	return s, nil
}

// limitIdleTransactions makes PostgreSQL end idle transactions: a server that is
// paused may have locks that all others wait for.
func limitIdleTransactions(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SET idle_in_transaction_session_timeout = '15s'")
	return err
}

func (s *Store) openSQLite(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// The file contains secrets: only this user can read it, with any umask.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return err
	}
	s.space.dir = filepath.Dir(path)
	s.AddDisk(models.Say("the database"), s.space.dir)
	if free, _, err := freeSpace(s.space.dir); err == nil && free < startBytes {
		if err := os.Remove(s.startFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file := "file:" + (&url.URL{Path: path}).EscapedPath()
	if s.probe, err = sql.Open(sqliteDriver, file+"?mode=ro&_busy_timeout=1000"); err != nil {
		return err
	}
	s.probe.SetMaxIdleConns(-1) // the other connections have in memory what the file may have lost
	dsn := file + "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=on&_busy_timeout=10000"
	if s.write, err = open(sqliteAt(dsn+"&_txlock=immediate"), 1); err != nil {
		return err
	}
	s.snapshots = make(chan struct{}, sqliteReaders/2)
	s.read, err = open(sqliteAt(dsn+"&_query_only=on"), sqliteReaders)
	return err
}

func sqliteAt(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: sqliteDriver, DSN: dsn})
}

func open(dialector gorm.Dialector, connections int) (*gorm.DB, error) {
	db, err := gorm.Open(dialector, &gorm.Config{
		// gorm would make memory_mi_b of MemoryMiB.
		NamingStrategy:         schema.NamingStrategy{NameReplacer: strings.NewReplacer("MiB", "Mib")},
		TranslateError:         true,
		SkipDefaultTransaction: true,
		Logger:                 statementLogger(slog.Default()),
	})
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return db, nil
}

// LogTo makes log the logger of the store and of what uses it, and writes to it a line
// for what each committed transaction changes. Call it before use.
func (s *Store) LogTo(log *slog.Logger) {
	s.log = log
	s.write.Logger, s.read.Logger = statementLogger(log), statementLogger(log)
}

// Log is the logger for errors that nobody is told of.
func (s *Store) Log() *slog.Logger { return cmp.Or(s.log, slog.Default()) }

// slowStatement is how long a statement takes that is logged.
const slowStatement = time.Second

// statementLogger logs statements that fail or are slow.
func statementLogger(log *slog.Logger) logger.Interface {
	return expectedErrorsFilter{logger.NewSlogLogger(log, logger.Config{
		SlowThreshold: slowStatement, LogLevel: logger.Warn, ParameterizedQueries: true})}
}

// expectedErrorsFilter keeps errors that callers handle out of the log: a taken
// name, a request whose client has gone.
type expectedErrorsFilter struct{ logger.Interface }

func (l expectedErrorsFilter) LogMode(level logger.LogLevel) logger.Interface {
	return expectedErrorsFilter{l.Interface.LogMode(level)}
}

// ParamsFilter keeps values out of the log: some are secrets.
func (expectedErrorsFilter) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

func (l expectedErrorsFilter) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	if Duplicate(err) || errors.Is(err, context.Canceled) || errors.Is(err, logger.ErrRecordNotFound) {
		err = nil
	}
	if err == nil && time.Since(begin) <= slowStatement {
		return // before gorm composes the text of every statement, to log none
	}
	l.Interface.Trace(ctx, begin, fc, err)
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

// Queries reads and writes within one connection or transaction.
type Queries struct {
	db       *gorm.DB
	postgres bool
	snapshot *snapshot // that it reads in; nil: none
	clock    func() time.Time
	mail     bool            // see Store.Mail
	topics   map[string]bool // what this transaction changed; nil outside one

	origin     string // see Store.origin
	revocation int64  // its number; 0 when nothing was revoked

	lockedVersion *int64 // of the pool, which this transaction has locked
	poolChanges   int
	poolProviders []int64         // that this transaction changed
	poolDevices   []int64         // whose providers it changed
	poolProjects  []int64         // whose shares it changed, by their names
	poolUsers     []int64         // as well
	revoked       map[string]bool // by revocation key
	audit         []models.AuditEntry
	events        []models.WorkspaceEvent
	notified      []notified
	historyOf     []int64 // projects whose history this transaction may change
}

// Writing reports whether this is a transaction that may write.
func (q *Queries) Writing() bool { return q.topics != nil }

// Read returns queries for reading, outside a transaction unless ctx is in a snapshot.
func (s *Store) Read(ctx context.Context) *Queries {
	return &Queries{db: s.reader(ctx), postgres: s.dialect == "postgres", clock: s.Clock, snapshot: s.snapshot(ctx)}
}

// reader is the reading connection. SQLite's driver starts a goroutine for every row of
// a query that ctx could interrupt, so reads there, which are short, run to their end
// once they have begun.
func (s *Store) reader(ctx context.Context) *gorm.DB {
	if s.dialect == "sqlite" && ctx.Err() == nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx = s.withSecrets(ctx)
	if in := s.snapshot(ctx); in != nil {
		return in.tx.WithContext(ctx)
	}
	return s.read.WithContext(ctx)
}

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
		if !sleep(ctx, time.Duration(rand.Int64N(int64(try)*int64(10*time.Millisecond)))) {
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

// OnChange registers a listener that gets, after each commit, the topics that
// the transaction changed. Listeners must return at once.
func (s *Store) OnChange(listener func(topics []string)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listeners = append(s.listeners, listener)
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

// Touch marks a topic as changed by this transaction: "pool",
// "workspace:5", "project:3", "user:7".
func (q *Queries) Touch(topic string, id ...int64) {
	if len(id) > 0 {
		topic = fmt.Sprintf("%s:%d", topic, id[0])
	}
	if q.topics != nil {
		q.topics[topic] = true
	}
}

// Duplicate reports whether err is a violated unique index.
func Duplicate(err error) bool { return errors.Is(err, gorm.ErrDuplicatedKey) }

// taken turns a violated unique index into a Conflict at a field.
func taken(err error, field string, message models.Text) error {
	if Duplicate(err) {
		return models.ConflictAt(field, models.Say("is already taken"), message)
	}
	return err
}

// found turns gorm's "record not found" into NotFound.
func found(err error, what string) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return models.NotFound(what)
	}
	return err
}

// Now is the clock's time in the precision of both databases: UTC, microseconds.
func (s *Store) Now() time.Time { return instant(s.Clock) }

// Now is the store's time; see [Store.Now].
func (q *Queries) Now() time.Time { return instant(q.clock) }

func instant(clock func() time.Time) time.Time { return clock().UTC().Truncate(time.Microsecond) }

// Scope restricts a query to projects: all of them, or Projects, or those of which the
// user is an active member at the time At. The zero Scope matches nothing.
type Scope struct {
	All      bool
	Projects []int64
	UserID   int64
	At       time.Time
}

// AllProjects is the scope of platform administrators and background work.
var AllProjects = Scope{All: true}

// projects restricts db to rows whose column names a project in scope.
func (s Scope) projects(db *gorm.DB, column string) *gorm.DB {
	if s.All {
		return db
	}
	if s.UserID == 0 {
		return db.Where(column+" IN ?", s.Projects)
	}
	return db.Where(column+` IN (SELECT m.project_id FROM members m
		WHERE m.user_id = ? AND m.removed_at IS NULL AND (m.until IS NULL OR m.until > ?))`, s.UserID, s.At)
}

// PageSize is the maximum number of rows of a page.
const PageSize = 200

// Page is at most Limit rows after the row with id After; the default is 50 and
// the maximum PageSize.
type Page struct {
	After int64
	Key   string // of that row, in a list with a sort key: its value when the row was read
	Limit int
}

func (p Page) limit() int {
	if p.Limit <= 0 {
		return 50
	}
	return min(p.Limit, PageSize)
}

// newest applies the page to rows in descending order of their ids.
func (p Page) newest(db *gorm.DB, id string) *gorm.DB {
	if p.After > 0 {
		db = db.Where(id+" < ?", p.After)
	}
	return db.Order(id + " DESC").Limit(p.limit())
}

// oldest applies the page to rows in ascending order of their ids.
func (p Page) oldest(db *gorm.DB, id string) *gorm.DB {
	return db.Where(id+" > ?", p.After).Order(id).Limit(p.limit())
}

// storable reports whether a text could be in the database at all: PostgreSQL
// stores neither NUL nor invalid UTF-8, and no searched column is long.
func storable(text string) bool {
	return len(text) <= 1000 && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// like escapes a user's text for use inside a LIKE pattern with ESCAPE '\'.
func like(text string) string {
	return "%" + strings.NewReplacer(`\`, `\\`, "%", `\%`, "_", `\_`).Replace(strings.ToLower(text)) + "%"
}
