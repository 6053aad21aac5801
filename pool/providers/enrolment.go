package providers

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/authority"
)

// EnrolmentConfig is what an Enrolment works with.
type EnrolmentConfig struct {
	Store               *models.Store
	Access              *policies.Access
	Authority           *authority.Authority
	CertificateLifetime time.Duration // of an agent's certificate
	Every               time.Duration // between an agent's heartbeats

	Cluster   Cluster // vouches for nodes; nil: agents need codes
	NodeOwner string  // address of the account whose GPUs nodes have; empty: of the platform administrator who was there first
}

// Enrolment lets agents of machines into the pool, takes their
// heartbeats, and shuts them out. Everything about agents happens under the pool's lock.
type Enrolment struct {
	EnrolmentConfig
}

// NewEnrolment makes the service.
func NewEnrolment(c EnrolmentConfig) *Enrolment {
	return &Enrolment{c}
}

// committedRefusal is a refusal whose transaction is committed all the same:
// what has led to it is in the audit.
type committedRefusal struct{ error }

// inTx runs fn under the pool's lock.
func (e *Enrolment) inTx(ctx context.Context, fn func(*models.Queries) error) error {
	var refusal committedRefusal
	err := e.Store.InTx(ctx, func(q *models.Queries) error {
		refusal = committedRefusal{}
		if err := q.LockPool(); err != nil {
			return err
		}
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

// enrolment is who acts when an agent does.
var enrolment = policies.System("enrolment")
