package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/projects"
)

func (a rest) peopleOperations(s section) {
	register(a, s, route{http.MethodGet, "/users.csv", 200, "download-users",
		models.Say("Export users as CSV, in the import format; requires platform administrator")}, a.downloadUsers)
	describeDownload(s, "/users.csv", "text/csv")
	register(a, s, route{http.MethodGet, "/users", 200, "list-users", models.Say("List users")}, a.listUsers)
	register(a, s, route{http.MethodPost, "/users", 201, "create-user", models.Say("Create a user")}, a.createUser)
	register(a, s, route{http.MethodGet, "/users/{id}", 200, "get-user", models.Say("Get a user and their memberships")}, a.getUser)
	register(a, s, route{http.MethodPut, "/users/{id}", 200, "update-user",
		models.Say("Update a user; disabling an account ends its sessions and revokes its tokens")}, a.updateUser)
	register(a, s, route{http.MethodPut, "/users/{id}/password", 204, "reset-password",
		models.Say("Reset a user's password; ends all sessions, revokes all tokens and removes all passkeys")}, a.resetPassword)
	register(a, s, route{http.MethodDelete, "/users/{id}/identities/{identity}", 204, "delete-identity",
		models.Say("Delete an identity of a user; ends all sessions")}, a.deleteIdentity)
	register(a, s, route{http.MethodPost, "/users/import", 200, "import-users",
		models.Say("Import users from CSV atomically, or preview the import; requires platform administrator")}, a.importUsers)
}

// User is an account.
type User struct {
	ID        int64     `json:"id"`
	Email     string    `json:"email" doc:"email address; of a service account its identifier"`
	Kind      string    `json:"kind" enum:"person,service" doc:"person, or service account of a project"`
	Confirmed bool      `json:"email_confirmed" doc:"the person is known to have the email address"`
	Name      string    `json:"name"`
	Admin     bool      `json:"admin" doc:"platform administrator"`
	Auditor   bool      `json:"auditor" doc:"auditor: read-only access to the whole platform"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"created_at"`

	SecondFactor bool   `json:"second_factor" doc:"a second factor is enabled"`
	DepartmentID *int64 `json:"department_id,omitempty"`
	Department   string `json:"department,omitempty"`
}

func userOf(u models.User) User {
	return User{u.ID, u.Email, kindOf(u.Email), !u.EmailUnconfirmed, u.Name, u.Admin, u.Auditor, u.Disabled, u.CreatedAt.UTC(),
		u.SecondFactorAt != nil, u.DepartmentID, ""}
}

// Person is an account with its places in projects.
type Person struct {
	User
	Memberships []Membership `json:"memberships"`
	Identities  []Identity   `json:"identities" doc:"identities at external identity providers"`
	Passkeys    []Passkey    `json:"passkeys" doc:"with which the person signs in without a password"`
	TimeZone    string       `json:"time_zone" doc:"in which pages and emails show times; empty: that of the browser, and UTC"`
}

// Membership is a user's membership of a project, with the limit and use.
type Membership struct {
	ProjectID  int64            `json:"project_id"`
	Project    string           `json:"project"`
	MemberID   int64            `json:"member_id"`
	RoleID     int64            `json:"role_id"`
	Role       string           `json:"role"`
	Permission string           `json:"permission" enum:"owner,manager,member,viewer,custom"`
	Until      *time.Time       `json:"until,omitempty" doc:"end of the membership"`
	Active     bool             `json:"active" doc:"the project's period of use includes the current time"`
	Limit      models.Resources `json:"limit" doc:"limit of the role"`
	InUse      models.Resources `json:"in_use" doc:"resources in use by your workspaces"`
	Remaining  models.Resources `json:"remaining" doc:"available resources within the limit and the quota"`
}

func personOf(u models.User, memberships []projects.Membership, now time.Time) Person {
	p := Person{User: userOf(u), Identities: []Identity{}, Passkeys: []Passkey{}, TimeZone: u.TimeZone}
	p.Memberships = models.Map(memberships, func(m projects.Membership) Membership {
		return Membership{ProjectID: m.Project.ID, Project: m.Project.Name, MemberID: m.Member.ID, RoleID: m.Member.RoleID,
			Role: m.Member.RoleName, Permission: m.Member.Permission, Until: utc(m.Member.Until), Active: m.Project.Active(now),
			Limit: m.Use.Limit, InUse: m.Use.InUseByMember, Remaining: m.Use.Remaining()}
	})
	return p
}

// personFound reads an account anew, with its places.
func (a rest) personFound(ctx context.Context, u models.User, err error) (Person, error) {
	if err != nil {
		return Person{}, err
	}
	places, err := a.Projects.Memberships(ctx, actorOf(ctx), u.ID)
	return a.withIdentities(ctx, personOf(u, places, a.Store.Now()), err)
}

// withIdentities adds the identities, the passkeys and the department of an account.
func (a rest) withIdentities(ctx context.Context, p Person, err error) (Person, error) {
	if err != nil {
		return Person{}, err
	}
	list, err := a.Accounts.Identities(ctx, actorOf(ctx), p.ID)
	if err != nil {
		return p, err
	}
	p.Identities = models.Map(list, identityOf)
	passkeys, err := a.Accounts.Passkeys(ctx, actorOf(ctx), p.ID)
	if err != nil {
		return p, err
	}
	if p.Passkeys = models.Map(passkeys, passkeyOf); p.DepartmentID == nil {
		return p, nil
	}
	names, err := a.Accounts.DepartmentsOf(ctx, actorOf(ctx), models.User{ID: p.ID, DepartmentID: p.DepartmentID})
	p.Department = names[*p.DepartmentID]
	return p, err
}

// Identity is a subject at an identity provider that is linked to an account.
type Identity struct {
	ID        int64     `json:"id"`
	Issuer    string    `json:"issuer" doc:"issuer URL of the identity provider"`
	Subject   string    `json:"subject" doc:"permanent subject identifier at the identity provider"`
	Email     string    `json:"email" doc:"email address last reported by the identity provider"`
	Admin     bool      `json:"admin" doc:"platform administrator through a group of the identity provider"`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at" doc:"time of the last sign-in"`
}

func identityOf(i models.Identity) Identity {
	return Identity{i.ID, i.Issuer, i.Subject, i.Email, i.Admin, i.CreatedAt.UTC(), i.SeenAt.UTC()}
}

// UsersQuery searches accounts.
type UsersQuery struct {
	Paging
	Search string `query:"q" maxLength:"200" doc:"part of a name or email address"`
}

func (a rest) listUsers(ctx context.Context, in *UsersQuery) (*Response[List[User]], error) {
	return listed(in.Paging, personID, func(p store.Page) ([]personRow, error) { return a.peopleRows(ctx, in.Search, p) },
		func(p personRow) User {
			u := userOf(p.User)
			u.Department = p.department
			return u
		})
}

func (a rest) createUser(ctx context.Context, in *Create[policies.NewUser]) (*Created[Person], error) {
	u, err := a.Accounts.CreateUser(ctx, actorOf(ctx), in.Body)
	return created(u.Version, personOf(u, nil, a.Store.Now()), err, "users", u.ID)
}

func (a rest) getUser(ctx context.Context, in *ByID) (*Found[Person], error) {
	u, err := a.Accounts.User(ctx, actorOf(ctx), in.ID)
	p, err := a.personFound(ctx, u, err)
	return found(u.Version, p, err)
}

func (a rest) updateUser(ctx context.Context, in *Update[policies.UserChange]) (*Found[Person], error) {
	in.Body.Version = in.version
	u, err := a.Accounts.UpdateUser(ctx, actorOf(ctx), in.ID, in.Body)
	p, err := a.personFound(ctx, u, err)
	return found(u.Version, p, err)
}

// PasswordInput is a new password.
type PasswordInput struct {
	Password string `json:"password" maxLength:"1000" doc:"new password; at least 10 characters"`
}

func (a rest) resetPassword(ctx context.Context, in *CreateIn[PasswordInput]) (*Nothing, error) {
	return nil, a.Accounts.ResetPassword(ctx, actorOf(ctx), in.ID, in.Body.Password)
}

// personRow is an account with its department's name.
type personRow struct {
	models.User
	department string
}

// peopleRows lists accounts with their departments.
func (a rest) peopleRows(ctx context.Context, search string, page store.Page) ([]personRow, error) {
	users, err := a.Accounts.Users(ctx, actorOf(ctx), search, page)
	if err != nil {
		return nil, err
	}
	names, err := a.Accounts.DepartmentsOf(ctx, actorOf(ctx), users...)
	rows := make([]personRow, len(users))
	for i, u := range users {
		rows[i] = personRow{User: u}
		if u.DepartmentID != nil {
			rows[i].department = names[*u.DepartmentID]
		}
	}
	return rows, err
}

func personID(p personRow) int64 { return p.ID }

func (a rest) downloadUsers(ctx context.Context, _ *struct{}) (*huma.StreamResponse, error) {
	return downloaded(a, ctx, "weir-people.csv", policies.PeopleColumns,
		func(p personRow) []string { return policies.PersonCells(p.User, p.department) },
		byID(personID), func(ctx context.Context, page store.Page) ([]personRow, error) { return a.peopleRows(ctx, "", page) })
}

// ByIdentity names an account's identity.
type ByIdentity struct {
	ByID
	Identity int64 `path:"identity" minimum:"1" doc:"ID of the identity"`
}

func (a rest) deleteIdentity(ctx context.Context, in *ByIdentity) (*Nothing, error) {
	return nil, a.Accounts.DeleteIdentity(ctx, actorOf(ctx), in.ID, in.Identity)
}

func (a rest) importUsers(ctx context.Context, in *Create[TableInput]) (*Response[ImportReport], error) {
	t, err := a.peopleImport(ctx, 0)
	return imported(ctx, t, in.Body, err)
}
