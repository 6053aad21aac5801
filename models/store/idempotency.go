package store

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm/clause"

	"weir/models"
)

// IdempotencyKeyLifetime is how long the key of a request is kept.
const IdempotencyKeyLifetime = 24 * time.Hour

// IdempotencyKey identifies a request that a client may send again without knowing
// whether it was carried out. Its row is committed in the transaction of what the
// request creates; the response is added afterwards.
type IdempotencyKey struct {
	UserID    int64             `gorm:"primaryKey"`
	Key       string            `gorm:"primaryKey"` // chosen by the client
	Request   string            // hash of the request
	Status    int               // of the response; 0: not known
	Header    map[string]string `gorm:"serializer:json"`
	Body      string
	CreatedAt time.Time

	// Claimed is set when a transaction has committed the key.
	Claimed bool `gorm:"-"`
}

// ErrIdempotencyKeyUsed is the error of a transaction whose key another one has
// committed.
var ErrIdempotencyKeyUsed = &models.Error{Kind: models.KindConflict, RetryAfter: time.Second,
	Message: models.Say("A request with this Idempotency-Key was carried out, but its response is not available: it is in progress, was lost, or contained a secret. Try again in a moment, or look for the result.")}

type idempotencyContextKey struct{}

// WithIdempotencyKey makes the first [Store.InRevokingTx] with the context that commits
// also commit the key. It fails with [ErrIdempotencyKeyUsed] if another one has.
func WithIdempotencyKey(ctx context.Context, k *IdempotencyKey) context.Context {
	return context.WithValue(ctx, idempotencyContextKey{}, k)
}

// ClaimKey claims the key of a context, if it has one, in a transaction of several requests. Whoever
// waits for it calls [KeyClaimed] when it is committed.
func (q *Queries) ClaimKey(ctx context.Context) error {
	if k := idempotencyKeyOf(ctx); k != nil {
		own := *k // its request may have been given up meanwhile
		return q.claim(&own)
	}
	return nil
}

// CheckKey fails if another request has claimed the key of a context.
func (q *Queries) CheckKey(ctx context.Context) error {
	k := idempotencyKeyOf(ctx)
	if k == nil {
		return nil
	}
	if _, err := q.IdempotencyKey(k.UserID, k.Key); err != nil {
		return models.IgnoreNotFound(err)
	}
	return ErrIdempotencyKeyUsed
}

// KeyClaimed tells that the transaction that has claimed the key of a context is committed.
func KeyClaimed(ctx context.Context) {
	if key := idempotencyKeyOf(ctx); key != nil {
		key.Claimed = true
	}
}

func idempotencyKeyOf(ctx context.Context) *IdempotencyKey {
	k, _ := ctx.Value(idempotencyContextKey{}).(*IdempotencyKey)
	return k
}

// claim inserts a key unless it is nil or claimed. It waits for a transaction that is
// inserting the same key.
func (q *Queries) claim(k *IdempotencyKey) error {
	if k == nil || k.Claimed {
		return nil
	}
	now := q.Now()
	err := q.db.Where("user_id = ? AND key = ? AND created_at <= ?", k.UserID, k.Key,
		now.Add(-IdempotencyKeyLifetime)).Delete(&IdempotencyKey{}).Error
	if err != nil {
		return err
	}
	k.CreatedAt = now
	if k.Header == nil {
		k.Header = map[string]string{} // NULL is not allowed
	}
	res := q.db.Clauses(clause.OnConflict{DoNothing: true}).Create(k)
	if res.Error == nil && res.RowsAffected == 0 {
		return ErrIdempotencyKeyUsed
	}
	return res.Error
}

// IdempotencyKey finds a key of a user.
func (q *Queries) IdempotencyKey(user int64, key string) (k IdempotencyKey, err error) {
	since := q.Now().Add(-IdempotencyKeyLifetime)
	return k, found(q.db.Where("user_id = ? AND key = ? AND created_at > ?", user, key, since).Take(&k).Error, "idempotency key")
}

// PutResponse adds the response to a key that the same request has claimed, or else
// stores both, unless another request has claimed it.
func (q *Queries) PutResponse(k IdempotencyKey) error {
	if !k.Claimed {
		err := q.claim(&k)
		if errors.Is(err, ErrIdempotencyKeyUsed) {
			return nil
		}
		return err
	}
	return q.db.Model(&k).Where("status = 0").Select("status", "header", "body").Updates(&k).Error
}
