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

// UserByEmail finds an account by its email address.
func (a *Accounts) UserByEmail(ctx context.Context, actor Actor, email string) (models.User, error) {
	if err := a.access.Check(actor, Platform, UserRead); err != nil {
		return models.User{}, err
	}
	return a.store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(email)))
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

// NewUser is the input for creating an account.
type NewUser struct {
	Email    string `json:"email" maxLength:"254" doc:"email address; used to sign in"`
	Name     string `json:"name" maxLength:"100" doc:"display name"`
	Password string `json:"password" maxLength:"1000" doc:"password; at least 10 characters"`
	Admin    bool   `json:"admin,omitempty" doc:"platform administrator"`
	Auditor  bool   `json:"auditor,omitempty" doc:"auditor: read-only access to the whole platform"`

	DepartmentID *int64 `json:"department_id,omitempty" minimum:"1" doc:"department ID; absent for none"`
}

// Check validates and normalizes the input.
func (n *NewUser) Check() error {
	var p models.Problems
	n.Email = models.CheckEmail("email", n.Email, &p)
	n.Name = models.CheckName("name", n.Name, &p)
	checkPasswordRules("password", n.Password, &p)
	return p.Err()
}

// CreateUser adds an account.
func (a *Accounts) CreateUser(ctx context.Context, actor Actor, in NewUser) (models.User, error) {
	if err := a.access.Check(actor, Platform, UserWrite); err != nil {
		return models.User{}, err
	}
	u, err := a.NewAccount(ctx, in)
	if err != nil {
		return u, err
	}
	return u, a.access.Write(ctx, a.store, actor, Platform, UserWrite, func(q *store.Queries) error {
		u.ID = 0
		return a.AddAccount(q, actor, &u)
	})
}

// NewAccount checks the input for an account and hashes its password, which takes too
// long for a transaction.
func (a *Accounts) NewAccount(ctx context.Context, in NewUser) (models.User, error) {
	if err := in.Check(); err != nil {
		return models.User{}, err
	}
	hash, err := a.hash(ctx, in.Password)
	return models.User{Email: in.Email, Name: in.Name, Admin: in.Admin, Auditor: in.Auditor, DepartmentID: in.DepartmentID, PasswordHash: hash,
		SessionGeneration: 1, Version: 1, CreatedAt: a.store.Now()}, err
}

// AddAccount adds an account from NewAccount within a transaction, without checking
// permissions.
func (a *Accounts) AddAccount(q *store.Queries, actor Actor, u *models.User) error {
	if err := CheckDepartment(q, u.DepartmentID); err != nil {
		return err
	}
	if err := q.CreateUser(u); err != nil {
		return err
	}
	return actor.Audit(q, Change{Action: "create", Object: "account", ID: u.ID, After: auditUser(*u)})
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

// auditUser is an account in the audit, without secrets.
func auditUser(u models.User) map[string]any {
	return map[string]any{"email": u.Email, "name": u.Name, "admin": u.Admin, "auditor": u.Auditor,
		"disabled": u.Disabled, "department_id": u.DepartmentID, "email_confirmed": !u.EmailUnconfirmed, "time_zone": u.TimeZone}
}
