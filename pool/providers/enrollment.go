package providers

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/authority"
)

// Enrollment enrolls agents, processes their heartbeats, and revokes them. All
// transactions about agents hold the pool's lock.
type Enrollment struct {
	Store               *store.Store
	Access              *policies.Access
	Authority           *authority.Authority
	CertificateLifetime time.Duration // of agents
	Every               time.Duration // between heartbeats
	Zones               models.ClientZones

	Cluster   Cluster // authenticates the agents of nodes; nil: agents need codes
	NodeOwner string  // email address of the owner of the nodes' GPUs; empty for the first platform administrator
}

// Cluster authenticates the agents on its nodes.
type Cluster interface {
	// NodeOf is the name of the node of the pod to which a token belongs. The
	// error for other tokens is unauthenticated, and unavailable while the
	// cluster does not respond.
	NodeOf(ctx context.Context, token string) (node string, err error)
}

// committedRefusal is an error whose transaction is committed, with the entry in
// the audit.
type committedRefusal struct{ error }

// inTx is lockedTx for errors that can be a committedRefusal.
func (e *Enrollment) inTx(ctx context.Context, fn func(*store.Queries) error) error {
	var refusal committedRefusal
	err := lockedTx(ctx, e.Store, func(q *store.Queries) error {
		refusal = committedRefusal{}
		err := fn(q)
		if errors.As(err, &refusal) {
			return nil
		}
		return err
	})
	if err == nil {
		err = refusal.error
	}
	return err
}

// lockedTx runs fn in a transaction that holds the pool's lock.
func lockedTx(ctx context.Context, db *store.Store, fn func(*store.Queries) error) error {
	return db.InTx(ctx, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		return fn(q)
	})
}

// enrollment is the actor of agents' requests.
var enrollment = policies.System("enrollment")
