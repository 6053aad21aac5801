package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// revocationsTopic wakes servers that have revocations to apply.
	revocationsTopic = "revocations"
	// revocationLock is an arbitrary number that all servers of Weir share.
	revocationLock = 0x77657276 // "werv"

	revokeTimeout = 2 * time.Second // for checking open connections; then they are closed
	// keepRevocations is much longer than any server runs without polling.
	keepRevocations = time.Hour
)

// Revocation is a transaction that may have taken rights away.
type Revocation struct {
	Number int64 `gorm:"primaryKey"` // in the order of the commits
	At     time.Time
	Origin string // the server that made it
	Keys   string // revocation keys, separated by spaces
}

// Revoke records that this transaction may change rights that depend on this
// key; see [RevocationListener] and [Cache].
func (q *Queries) Revoke(kind string, id int64) { q.revoke(RevocationKey(kind, id)) }

// RevocationKey is the revocation key of a kind (user, project, workspace) and an id.
func RevocationKey(kind string, id int64) string { return kind + ":" + strconv.FormatInt(id, 10) }

// SessionKey is the revocation key of a portal session or access token, by its
// hash.
func SessionKey(hash string) string { return "session:" + hash }

func (q *Queries) revoke(key string) {
	if q.topics == nil {
		return // not in a transaction
	}
	q.Touch(revocationsTopic)
	if q.revoked == nil {
		q.revoked = map[string]bool{}
	}
	q.revoked[key] = true
}

// recordRevocation numbers what this transaction revokes. It comes last: from
// here to the commit no other transaction gets a number.
func (q *Queries) recordRevocation() error {
	if len(q.revoked) == 0 {
		return nil
	}
	if err := q.lock("SELECT pg_advisory_xact_lock(?)", revocationLock); err != nil {
		return err
	}
	r := Revocation{At: q.Now(), Origin: q.origin, Keys: strings.Join(slices.Sorted(maps.Keys(q.revoked)), " ")}
	err := q.db.Create(&r).Error
	q.revocation = r.Number
	return err
}

// applyRevocations closes this process's connections that have lost their
// right.
func (s *Store) applyRevocations(ctx context.Context, keys []string) {
	if len(keys) == 0 {
		return
	}
	s.changes.addKeys(keys)
	// Applied also when the client of the call has disconnected.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), revokeTimeout)
	defer cancel()
	for _, l := range s.listenersOfRevocations() {
		l.Revoked(ctx, keys)
	}
}

func (s *Store) cutAll() {
	s.changes.addAll()
	for _, l := range s.listenersOfRevocations() {
		l.Cut()
	}
}

func (s *Store) listenersOfRevocations() []RevocationListener {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.revocationListeners)
}
