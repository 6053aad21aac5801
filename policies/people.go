package policies

import (
	"cmp"
	"context"
	"strings"

	"weir/models"
	"weir/models/store"
)

// UserChange is the new state of an account. Version is the one that was read; 0
// accepts any.
type UserChange struct {
	Name     string `json:"name" maxLength:"100"`
	Admin    bool   `json:"admin"`
	Auditor  bool   `json:"auditor,omitempty" doc:"auditor: read-only access to the whole platform; default false"`
	Disabled bool   `json:"disabled"`

	DepartmentID *int64 `json:"department_id,omitempty" minimum:"1" doc:"department ID; absent for none"`

	EmailConfirmed bool `json:"email_confirmed,omitempty" doc:"true confirms the email address; a confirmation is not withdrawn"`

	Version int64 `json:"-"`
}

// Users lists accounts whose name or email address contains search.
func (a *Accounts) Users(ctx context.Context, actor Actor, search string, page store.Page) ([]models.User, error) {
	if err := a.access.Check(actor, Platform, UserRead); err != nil {
		return nil, err
	}
	return a.store.Read(ctx).Users(search, page)
}

// User finds an account: the actor's own, or any for an administrator.
func (a *Accounts) User(ctx context.Context, actor Actor, id int64) (models.User, error) {
	if err := a.access.CheckOwned(actor, id, Platform, UserRead); err != nil {
		return models.User{}, err
	}
	return a.store.Read(ctx).User(id)
}

// UserForm returns an account, with the departments to choose from, for the page
// that shows and changes it; with id 0, only the departments, for forms that
// create accounts.
func (a *Accounts) UserForm(ctx context.Context, actor Actor, id int64) (u models.User, departments []models.Department, err error) {
	right := UserRead
	if id == 0 {
		right = UserWrite
	}
	if err := a.access.Check(actor, Platform, right); err != nil {
		return u, nil, err
	}
	q := a.store.Read(ctx)
	if id != 0 {
		if u, err = q.User(id); err != nil {
			return u, nil, err
		}
	}
	departments, err = q.DepartmentsByName()
	return u, departments, err
}

// UpdateUser changes an account. The last administrator stays one. Disabling an
// account ends its sessions and tokens at once.
func (a *Accounts) UpdateUser(ctx context.Context, actor Actor, id int64, in UserChange) (u models.User, err error) {
	err = a.writeUsers(ctx, actor, func(q *store.Queries) error {
		var p models.Problems
		in.Name = models.CheckName("name", in.Name, &p)
		if err := p.Err(); err != nil {
			return err
		}
		if u, err = q.User(id); err != nil {
			return err
		}
		u, err = a.updateUser(q, actor, u, in)
		return err
	})
	return u, err
}

// updateUser is UpdateUser after the checks, in a transaction that has locked the
// administrators.
func (a *Accounts) updateUser(q *store.Queries, actor Actor, u models.User, in UserChange) (models.User, error) {
	if err := models.CheckVersion("account", in.Version, u.Version); err != nil {
		return u, err
	}
	if err := CheckDepartment(q, in.DepartmentID); err != nil {
		return u, err
	}
	if u.IsService() && (in.Admin || in.Auditor || in.Name != u.Name) {
		return u, models.Conflict("A service account has no platform role, and its name cannot be changed.")
	}
	before := u
	u.Name, u.Admin, u.Auditor, u.Disabled, u.DepartmentID = in.Name, in.Admin, in.Auditor, in.Disabled, in.DepartmentID
	u.EmailUnconfirmed = u.EmailUnconfirmed && !in.EmailConfirmed
	if u.Disabled && !before.Disabled {
		u.SessionGeneration++
	}
	if err := a.checkLastAdministrator(q, before, u); err != nil {
		return u, err
	}
	if err := q.UpdateUser(&u); err != nil {
		return u, err
	}
	if u.Disabled {
		if err := q.DeleteTokensOf(u.ID); err != nil {
			return u, err
		}
	}
	if err := endVisitsWithoutFactor(q, before, u); err != nil {
		return u, err
	}
	return u, actor.Audit(q, Change{Action: "update", Object: "account", ID: u.ID, Before: auditUser(before), After: auditUser(u)})
}

// endVisitsWithoutFactor ends the visits of an account that has become an administrator's and lacks the second factor
// that is required of those: it is signed out until that is set up.
func endVisitsWithoutFactor(q *store.Queries, before, after models.User) error {
	due, err := secondFactorDue(q, after)
	if err != nil || !due || after.Admin == before.Admin {
		return err
	}
	return q.EndVisits([]int64{after.ID})
}

// Promote gives an account within a transaction what an invitation to the platform
// offers, without checking permissions.
func (a *Accounts) Promote(q *store.Queries, actor Actor, u *models.User, i models.Invitation) (err error) {
	if !i.Admin && !i.Auditor && i.DepartmentID == nil {
		return nil
	}
	if err := q.LockUsers(); err != nil {
		return err
	}
	if *u, err = q.User(u.ID); err != nil {
		return err
	}
	in := UserChange{Name: u.Name, Admin: u.Admin || i.Admin, Auditor: u.Auditor || i.Auditor,
		DepartmentID: cmp.Or(i.DepartmentID, u.DepartmentID)}
	*u, err = a.updateUser(q, actor, *u, in)
	return err
}

// checkLastAdministrator refuses to remove the last administrator.
func (a *Accounts) checkLastAdministrator(q *store.Queries, before, after models.User) error {
	was, is := before.Admin && !before.Disabled, after.Admin && !after.Disabled
	if !was || is {
		return nil
	}
	n, err := q.CountAdministrators()
	if err == nil && n <= 1 {
		err = models.Conflict("This is the last administrator. Make someone else an administrator first.")
	}
	return err
}

// ResetPassword sets an account's password and ends its sessions and tokens.
// Accounts that sign in with an identity provider have no password.
func (a *Accounts) ResetPassword(ctx context.Context, actor Actor, id int64, password string) error {
	if err := a.access.Check(actor, Platform, UserWrite); err != nil {
		return err
	}
	hash, err := a.newHash(ctx, password)
	if err != nil {
		return err
	}
	return a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error { return recoverAccount(q, actor, id, hash) })
}

// ChangePassword replaces the actor's own password, which ends all sessions; the
// caller signs in again.
func (a *Accounts) ChangePassword(ctx context.Context, actor Actor, current, password string) error {
	if err := a.checkPerson(ctx, actor, "current", current); err != nil {
		return err
	}
	hash, err := a.newHash(ctx, password)
	if err != nil {
		return err
	}
	return a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error { return setPassword(q, actor, actor.User.ID, hash) })
}

// checkPerson refuses a field of the input that is not the password of the actor's own account, which
// the actor may change.
func (a *Accounts) checkPerson(ctx context.Context, actor Actor, field, password string) error {
	if err := checkAccountWrite(actor); err != nil {
		return err
	}
	if err := requirePassword(a.store.Read(ctx), actor.User); err != nil {
		return err
	}
	own := bound{[2]string{actor.User.Email, ""}, failureLimit} // what strangers try locks out nobody who has signed in
	if wait := a.failures.take(a.store.Now(), own); wait > 0 {
		return tooManyAttempts(wait)
	}
	ok, err := a.verify(ctx, clientOf(ctx), password, actor.User.PasswordHash)
	if err != nil {
		a.failures.undo(own)
		return err
	}
	if !ok {
		return models.Invalid(field, "is not your current password")
	}
	a.failures.clear(own)
	return nil
}

// newHash checks and hashes a new password. It takes too long for a transaction.
func (a *Accounts) newHash(ctx context.Context, password string) (string, error) {
	if err := CheckPassword(password); err != nil {
		return "", err
	}
	return a.hash(ctx, password)
}

// CheckPassword checks the rules for a new password.
func CheckPassword(password string) error {
	var p models.Problems
	checkPasswordRules("password", password, &p)
	return p.Err()
}

// recoverAccount sets a password without the present one. It removes the passkeys:
// whoever knew the last password may have added some.
func recoverAccount(q *store.Queries, actor Actor, id int64, hash string) error {
	if err := setPassword(q, actor, id, hash); err != nil {
		return err
	}
	_, err := q.DeletePasskeysOf(id)
	return err
}

func setPassword(q *store.Queries, actor Actor, id int64, hash string) error {
	u, err := q.User(id)
	if err != nil {
		return err
	}
	if err := requirePassword(q, u); err != nil {
		return err
	}
	u.PasswordHash = hash
	u.SessionGeneration++
	if err := q.UpdateUser(&u); err != nil {
		return err
	}
	if err := q.DeleteTokensOf(id); err != nil {
		return err
	}
	return actor.Audit(q, Change{Action: "reset-password", Object: "account", ID: id})
}

// UserByEmail finds an account by its email address.
func (a *Accounts) UserByEmail(ctx context.Context, actor Actor, email string) (models.User, error) {
	if err := a.access.Check(actor, Platform, UserRead); err != nil {
		return models.User{}, err
	}
	return a.store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(email)))
}
