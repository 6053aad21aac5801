package policies

import (
	"context"

	"weir/models"
	"weir/models/store"
)

// EarlierResponse finds the response to an earlier request with the same key, for an
// actor whose access token has the scope of the operation. It returns false if there was
// none. A key of another request is invalid; without a response the error is
// [store.ErrIdempotencyKeyUsed].
func (a *Accounts) EarlierResponse(ctx context.Context, actor Actor, scope models.TokenScope,
	k store.IdempotencyKey) (store.IdempotencyKey, bool, error) {
	if actor.Scopes != nil && !models.Covers(actor.Scopes, scope) {
		return k, false, models.InsufficientScope(scope)
	}
	earlier, err := a.store.Read(ctx).IdempotencyKey(actor.User.ID, k.Key)
	switch {
	case err != nil:
		return k, false, models.IgnoreNotFound(err)
	case earlier.Request != k.Request:
		return k, false, models.Invalid("Idempotency-Key", "was used for another request")
	case earlier.Status == 0:
		return k, false, store.ErrIdempotencyKeyUsed
	}
	return earlier, true, nil
}

// KeepResponse stores the response to a request with a key.
func (a *Accounts) KeepResponse(ctx context.Context, k store.IdempotencyKey) error {
	return a.store.InTx(ctx, func(q *store.Queries) error { return q.PutResponse(k) })
}
