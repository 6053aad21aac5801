package policies

import (
	"context"

	"weir/models"
	"weir/models/store"
)

// SignInPolicyInput is the new state of the sign-in policy. Version is the one that was
// read; 0 accepts any.
type SignInPolicyInput struct {
	SecondFactor models.Audience `json:"second_factor" enum:"none,administrators,everyone" doc:"who must have a second factor"`

	Version int64 `json:"-"`
}

// SignInPolicy returns what sign-in requires.
func (a *Accounts) SignInPolicy(ctx context.Context, actor Actor) (p models.SignInPolicy, err error) {
	if err := a.access.Check(actor, Platform, UserRead); err != nil {
		return p, err
	}
	return a.store.Read(ctx).SignInPolicy()
}

// SetSignInPolicy changes what sign-in requires. Whoever lacks it is signed out, and sets
// it up with the next sign-in; administrators must have it themselves first.
func (a *Accounts) SetSignInPolicy(ctx context.Context, actor Actor, in SignInPolicyInput) (p models.SignInPolicy, err error) {
	err = a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error {
		var problems models.Problems
		models.CheckAudience("second_factor", in.SecondFactor, &problems)
		if err := problems.Err(); err != nil {
			return err
		}
		if p, err = q.SignInPolicy(); err != nil {
			return err
		}
		if err := models.CheckVersion("setting", in.Version, p.Version); err != nil {
			return err
		}
		before := p
		p.SecondFactor = in.SecondFactor
		if actor.User.ID != 0 && actor.User.SecondFactorAt == nil && p.Requires(actor.User) {
			return models.ConflictAt("second_factor", models.Say("would sign you out; your account has no second factor"),
				models.Say("Set up a second factor for your own account first."))
		}
		if err := q.SetSignInPolicy(&p); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "update", Object: "sign-in-policy", ID: p.ID, Before: before, After: p})
	})
	return p, err
}

// secondFactorDue reports whether the sign-in policy requires a second factor that an
// account does not have.
func secondFactorDue(q *store.Queries, u models.User) (bool, error) {
	if u.SecondFactorAt != nil || u.PasswordHash == "" {
		return false, nil
	}
	p, err := q.SignInPolicy()
	return p.Requires(u), err
}
