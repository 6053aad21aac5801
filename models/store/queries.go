package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"weir/models"
)

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

func (s *Store) withSecrets(ctx context.Context) context.Context {
	if s.Secrets == nil {
		return ctx
	}
	return context.WithValue(ctx, secretsKey{}, s.Secrets)
}

// Now is the store's time; see [Store.Now].
func (q *Queries) Now() time.Time { return instant(q.clock) }

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

// lock runs a SELECT that takes locks until the end of the transaction. SQLite
// has one writer and needs no locks.
func (q *Queries) lock(query string, args ...any) error {
	if !q.postgres || q.topics == nil {
		return nil
	}
	return q.db.Exec(query, args...).Error
}

// locking returns a database whose queries lock the rows that they return until
// the end of the transaction.
func (q *Queries) locking(strength string) *gorm.DB {
	if q.topics == nil {
		return q.db
	}
	return q.db.Clauses(clause.Locking{Strength: strength})
}

// update saves every column of row under optimistic locking.
func (q *Queries) update(row any, version *int64, id int64, what string) error {
	return replace(q.db.Where("id = ?", id), row, version, what, "id", "created_at")
}

// replace saves every column of a row but some, if it is still as db selects it and of its version;
// otherwise it is a Conflict and nothing is written.
func replace(db *gorm.DB, row any, version *int64, what string, but ...string) error {
	expected := *version
	*version++
	res := db.Model(row).Where("version = ?", expected).Select("*").Omit(but...).Updates(row)
	if res.Error == nil && res.RowsAffected == 0 {
		*version = expected
		return models.Stale(what)
	}
	return res.Error
}

func (q *Queries) deleted(res *gorm.DB, what string) error {
	if res.Error == nil && res.RowsAffected == 0 {
		return models.NotFound(what)
	}
	return res.Error
}

// found turns gorm's "record not found" into NotFound.
func found(err error, what string) error {
	if errors.Is(err, gorm.ErrRecordNotFound) {
		return models.NotFound(what)
	}
	return err
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

func nameTaken(err error, what, name string) error {
	return taken(err, "name", models.Say("Another %s named %s already exists.", models.Say(what), name))
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
