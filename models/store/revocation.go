package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/models"
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

// OnRevoke registers a listener for revocations, before anything is served.
func (s *Store) OnRevoke(listener RevocationListener) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.revocationListeners = append(s.revocationListeners, listener)
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
	if err == nil && key != nil {
		key.Claimed = true
	}
	if err != nil || number == 0 {
		return err
	}
	return s.waitForServers(ctx, number)
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
		sleep(ctx, pause)
	}
}
