package models

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// revocationsTopic tells servers that there is something to carry out.
	revocationsTopic = "revocations"
	// revocationKey is an arbitrary number that all servers of Weir share.
	revocationKey = 0x77657276 // "werv"

	askTime = 2 * time.Second // for asking about open connections; then they are cut
	// keepRevocations is much longer than any server goes on without looking.
	keepRevocations = time.Hour
)

// Revocation is a transaction that may have taken rights away.
type Revocation struct {
	Number int64 `gorm:"primaryKey"` // in the order of the commits
	At     time.Time
	Origin string // the server that made it
	Ties   string // joined by spaces
}

// Carrier has connections that stay open. What each hangs on are its ties,
// written like topics: "user:7", "session:…" with the hash of the session or
// access token that speaks, "project:3", "workspace:5".
type Carrier interface {
	// Revoked ends the connections with one of these ties that would not be
	// let in now. When it returns they pass nothing more, and who was just
	// being let in is asked again. Who cannot be asked before ctx ends is cut.
	Revoked(ctx context.Context, ties []string)
	// Cut ends all connections, those too that are just being let in.
	Cut()
}

// Carry adds to what carries out revocations, before anything is served.
func (s *Store) Carry(c Carrier) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.carriers = append(s.carriers, c)
}

// Revoke notes that this transaction may take away rights of whatever has
// this tie; see [Carrier].
func (q *Queries) Revoke(kind string, id int64) { q.revoke(Tie(kind, id)) }

// Tie names a tie by its kind (user, project, workspace) and id.
func Tie(kind string, id int64) string { return kind + ":" + strconv.FormatInt(id, 10) }

// SessionTie is the tie to a portal session or access token, by its hash.
func SessionTie(hash string) string { return "session:" + hash }

func (q *Queries) revoke(tie string) {
	if q.topics == nil {
		return // not in a transaction
	}
	q.Touch(revocationsTopic)
	if !slices.Contains(q.ties, tie) {
		q.ties = append(q.ties, tie)
	}
}

// recordRevocation numbers what this transaction revokes. It comes last: from
// here to the commit no other transaction gets a number.
func (q *Queries) recordRevocation(origin string) (number int64, err error) {
	if len(q.ties) == 0 {
		return 0, nil
	}
	if q.postgres {
		if err := q.db.Exec("SELECT pg_advisory_xact_lock(?)", revocationKey).Error; err != nil {
			return 0, err
		}
	}
	r := Revocation{At: q.Now(), Origin: origin, Ties: strings.Join(q.ties, " ")}
	err = q.db.Create(&r).Error
	return r.Number, err
}

// Revoking is InTx for transactions that may take rights away: when it
// returns they are gone on every server, from open connections too. Where
// nothing was revoked, or no other server is there, it does not wait.
func (s *Store) Revoking(ctx context.Context, fn func(*Queries) error) error {
	number, err := s.inTx(ctx, fn)
	if err != nil || number == 0 {
		return err
	}
	return s.settle(ctx, number)
}

// carryOut ends what this process has open and may not go on.
func (s *Store) carryOut(ctx context.Context, ties []string) {
	if len(ties) == 0 {
		return
	}
	// The client that asked for the revocation may have gone meanwhile.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	for _, c := range s.carrying() {
		c.Revoked(ctx, ties)
	}
}

func (s *Store) cut() {
	for _, c := range s.carrying() {
		c.Cut()
	}
}

func (s *Store) carrying() []Carrier {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.carriers)
}

// settle waits until every other server has carried a revocation out, or has
// lost its seat.
func (s *Store) settle(ctx context.Context, number int64) error {
	const first, longest = time.Millisecond, 20 * time.Millisecond
	peers, began := watch{}, s.Elapsed()
	for pause := first; ; pause = min(2*pause, longest) {
		left, err := behind(s.read.WithContext(ctx), s.origin, number)
		if err == nil && len(left) > 0 {
			err = dismiss(s.write.WithContext(ctx), peers.silent(left, s.Elapsed()))
		} else if err == nil {
			return nil
		}
		if err != nil && (ctx.Err() != nil || s.Elapsed()-began > 2*patience) {
			return Unavailable(err, "The change is made, but not every server of the portal is known to have ended what is open. They end it within %d seconds.",
				int64(patience/time.Second))
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
