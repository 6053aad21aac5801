package policies

import (
	"cmp"
	"context"
	"time"

	"weir/models"
	"weir/models/store"
)

// PendingSignInLifetime is how long the steps after the password may take.
const PendingSignInLifetime = 15 * time.Minute

// How the actor of a pending sign-in was authenticated, in the audit.
const (
	viaPassword = "password"
	viaPasskey  = "passkey"
)

// SignInStep is what follows after a right password, or a passkey.
type SignInStep int

// Steps of signing in.
const (
	SignedIn       SignInStep = iota // nothing
	CodeStep                         // a code of the second factor
	EnrollmentStep                   // setting up the second factor that the policy requires
)

// PendingSignIn is a sign-in after a right password or a passkey, before the next step. It gives no
// rights.
type PendingSignIn struct {
	UserID     int64     `json:"user"`
	Generation int64     `json:"generation"` // of the account's sessions
	Until      time.Time `json:"until"`
	Via        string    `json:"via"`
}

// NextStep returns what follows after the right password of an account, or after one of its
// passkeys, which stands for a code, too.
func (a *Accounts) NextStep(ctx context.Context, u models.User, byPasskey bool) (SignInStep, PendingSignIn, error) {
	pending := PendingSignIn{u.ID, u.SessionGeneration, a.store.Now().Add(PendingSignInLifetime), viaPassword}
	if byPasskey {
		pending.Via = viaPasskey
	}
	if u.SecondFactorAt != nil && !byPasskey {
		return CodeStep, pending, nil
	}
	due, err := secondFactorDue(a.store.Read(ctx), u)
	if due {
		return EnrollmentStep, pending, err
	}
	return SignedIn, PendingSignIn{}, err
}

// pendingActor is the person of a pending sign-in, who may take a step.
func (a *Accounts) pendingActor(ctx context.Context, p PendingSignIn, step SignInStep) (Actor, error) {
	if p.UserID == 0 || !a.store.Now().Before(p.Until) {
		return Actor{}, unauthenticated(nil)
	}
	actor, err := a.Load(ctx, p.UserID)
	if err != nil {
		return Actor{}, err
	}
	enrolled := actor.User.SecondFactorAt != nil
	if actor.User.SessionGeneration != p.Generation || enrolled != (step == CodeStep) {
		return Actor{}, unauthenticated(nil)
	}
	actor.Via = cmp.Or(p.Via, viaPassword)
	return actor, nil
}

// CheckPending returns an error unless a step of a sign-in can be taken now.
func (a *Accounts) CheckPending(ctx context.Context, p PendingSignIn, step SignInStep) error {
	_, err := a.pendingActor(ctx, p, step)
	return err
}

// SignInWithCode completes a sign-in with a code of the authenticator app, or a recovery
// code.
func (a *Accounts) SignInWithCode(ctx context.Context, p PendingSignIn, code string) (u models.User, err error) {
	actor, err := a.pendingActor(ctx, p, CodeStep)
	if err != nil {
		return u, err
	}
	err = a.withCode(ctx, actor, code, func(q *store.Queries) error {
		u, err = q.User(actor.User.ID)
		return err
	})
	return u, err
}

// BeginRequiredSecondFactor is BeginSecondFactor during a sign-in.
func (a *Accounts) BeginRequiredSecondFactor(ctx context.Context, p PendingSignIn) (e Enrollment, err error) {
	actor, err := a.pendingActor(ctx, p, EnrollmentStep)
	if err != nil {
		return e, err
	}
	err = a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		e, err = a.beginEnrollment(q, actor.User)
		return err
	})
	return e, err
}

// RequiredEnrollment is Enrollment during a sign-in.
func (a *Accounts) RequiredEnrollment(ctx context.Context, p PendingSignIn) (Enrollment, error) {
	actor, err := a.pendingActor(ctx, p, EnrollmentStep)
	if err != nil {
		return Enrollment{}, err
	}
	return a.Enrollment(ctx, actor)
}

// ConfirmRequiredSecondFactor is ConfirmSecondFactor during a sign-in, which it completes.
func (a *Accounts) ConfirmRequiredSecondFactor(ctx context.Context, p PendingSignIn, code string) (
	u models.User, codes []string, err error) {
	actor, err := a.pendingActor(ctx, p, EnrollmentStep)
	if err != nil {
		return u, nil, err
	}
	if codes, err = a.ConfirmSecondFactor(ctx, actor, code); err != nil {
		return u, nil, err
	}
	u, err = a.store.Read(ctx).User(actor.User.ID)
	return u, codes, err
}
