package handlers

import (
	"context"
	"strconv"
	"time"

	"weir/models"
	"weir/pool"
)

// What operations take.

// ByID names one resource.
type ByID struct {
	ID int64 `path:"id" minimum:"1"`
}

// Paging asks for one page of a list.
type Paging struct {
	Cursor string `query:"cursor" maxLength:"20" doc:"next_cursor of the page before"`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50" doc:"at most so many items"`
}

// Create carries a new resource.
type Create[B any] struct{ Body B }

// Update replaces a resource.
type Update[B any] struct {
	ByID
	IfMatch
	Body B
}

// What operations give.

// Answer is a body without a version.
type Answer[B any] struct{ Body B }

// Found is a resource that carries its version.
type Found[B any] struct {
	ETag string `header:"ETag" doc:"the version, for If-Match"`
	Body B
}

// Created is a new resource.
type Created[B any] struct {
	ETag     string `header:"ETag" doc:"the version, for If-Match"`
	Location string `header:"Location" doc:"the path of the new resource"`
	Body     B
}

func found[B any](version int64, body B, err error) (*Found[B], error) {
	if err != nil {
		return nil, err
	}
	return &Found[B]{ETag: etag(version), Body: body}, nil
}

func created[B any](version int64, body B, err error, location ...any) (*Created[B], error) {
	if err != nil {
		return nil, err
	}
	c := &Created[B]{Location: apiPrefix + path(location...), Body: body}
	if version > 0 {
		c.ETag = etag(version)
	}
	return c, nil
}

// Nothing is an answer without a body.
type Nothing struct{}

// List is one page.
type List[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor,omitempty" doc:"cursor of the next page; absent on the last"`
}

// listed answers with one page. A full page is the last one when nothing
// comes after it.
func listed[T, R any](p Paging, id func(T) int64, fetch func(models.Page) ([]T, error), show func(T) R) (*Answer[List[R]], error) {
	page, err := p.page()
	if err != nil {
		return nil, err
	}
	rows, err := fetch(page)
	if err != nil {
		return nil, err
	}
	list := List[R]{Items: shown(rows, show)}
	if n := len(rows); n > 0 && n == page.Limit {
		last := id(rows[n-1])
		more, err := fetch(models.Page{After: last, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(more) > 0 {
			list.NextCursor = strconv.FormatInt(last, 10)
		}
	}
	return &Answer[List[R]]{list}, nil
}

// listedWhole pages a list that a service gives as a whole.
func listedWhole[T, R any](p Paging, id func(T) int64, all []T, err error, show func(T) R) (*Answer[List[R]], error) {
	if err != nil {
		return nil, err
	}
	return listed(p, id, func(page models.Page) ([]T, error) {
		from := 0
		for page.After != 0 && from < len(all) {
			if from++; id(all[from-1]) == page.After {
				break
			}
		}
		return all[from:min(from+page.Limit, len(all))], nil
	}, show)
}

func (p Paging) page() (models.Page, error) {
	if p.Cursor == "" {
		return models.Page{Limit: p.Limit}, nil
	}
	after, err := strconv.ParseInt(p.Cursor, 10, 64)
	if err != nil || after < 1 {
		return models.Page{}, refuse("query.cursor", "is no cursor of this list")
	}
	return models.Page{After: after, Limit: p.Limit}, nil
}

func shown[T, R any](rows []T, show func(T) R) []R {
	list := make([]R, len(rows))
	for i, row := range rows {
		list[i] = show(row)
	}
	return list
}

func sentence(t models.Text) string { return t.String() }

func utc(t *time.Time) *time.Time {
	if t == nil {
		return nil
	}
	u := t.UTC()
	return &u
}

// User is an account.
type User struct {
	ID        int64     `json:"id"`
	Email     string    `json:"email"`
	Name      string    `json:"name"`
	Admin     bool      `json:"admin" doc:"platform administrator"`
	Auditor   bool      `json:"auditor" doc:"sees everything on the platform and changes nothing"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"created_at"`

	DepartmentID *int64 `json:"department_id,omitempty"`
	Department   string `json:"department,omitempty"`
}

func userOf(u models.User) User {
	return User{u.ID, u.Email, u.Name, u.Admin, u.Auditor, u.Disabled, u.CreatedAt.UTC(), u.DepartmentID, ""}
}

// Person is an account with its places in projects.
type Person struct {
	User
	Memberships []Membership `json:"memberships"`
	Identities  []Identity   `json:"identities" doc:"by which providers of sign-in it comes in"`
}

// Membership is a place in a project, and what may be held there.
type Membership struct {
	ProjectID  int64            `json:"project_id"`
	Project    string           `json:"project"`
	MemberID   int64            `json:"member_id"`
	RoleID     int64            `json:"role_id"`
	Role       string           `json:"role"`
	Permission string           `json:"permission" enum:"manager,member"`
	Until      *time.Time       `json:"until,omitempty" doc:"participation deadline"`
	Active     bool             `json:"active" doc:"whether the project's period of use covers now"`
	Peak       models.Resources `json:"peak" doc:"the most that may be held at once"`
	Held       models.Resources `json:"held" doc:"by own workspaces, now"`
	Left       models.Resources `json:"left" doc:"what may be held in addition, within peak and quota"`
}

func personOf(u models.User, places []pool.Mine, now time.Time) Person {
	return Person{User: userOf(u), Identities: []Identity{}, Memberships: shown(places, func(m pool.Mine) Membership {
		return Membership{ProjectID: m.Project.ID, Project: m.Project.Name, MemberID: m.Member.ID, RoleID: m.Member.RoleID,
			Role: m.Member.RoleName, Permission: m.Member.Permission, Until: utc(m.Member.Until), Active: m.Project.Active(now),
			Peak: m.Room.Peak, Held: m.Room.HeldByMember, Left: m.Room.Left()}
	})}
}

// Token is a personal access token without its secret.
type Token struct {
	ID         int64      `json:"id"`
	Name       string     `json:"name"`
	ExpiresAt  time.Time  `json:"expires_at"`
	LastUsedAt *time.Time `json:"last_used_at,omitempty"`
	CreatedAt  time.Time  `json:"created_at"`
}

func tokenOf(t models.AccessToken) Token {
	return Token{t.ID, t.Name, t.ExpiresAt.UTC(), utc(t.LastUsedAt), t.CreatedAt.UTC()}
}

// NewToken is a token with its secret.
type NewToken struct {
	Token
	Secret string `json:"secret" doc:"the token itself; it is never shown again"`
}

// Project is a team with its quota.
type Project struct {
	ID          int64                   `json:"id"`
	Name        string                  `json:"name"`
	Description string                  `json:"description"`
	Quota       models.Resources        `json:"quota"`
	Promised    models.Resources        `json:"promised" doc:"sum over members of their role's peak"`
	Held        models.Resources        `json:"held" doc:"by workspaces, now"`
	Left        models.Resources        `json:"left" doc:"quota less promised: what further members may be promised"`
	StartsAt    time.Time               `json:"starts_at" doc:"begin of the period of use"`
	EndsAt      *time.Time              `json:"ends_at,omitempty" doc:"its end; absent: open-ended"`
	Active      bool                    `json:"active" doc:"whether the period of use covers now"`
	Launch      models.LaunchParameters `json:"launch" doc:"initial launch parameters"`
	Priority    int64                   `json:"priority" doc:"in the queue, 1 to 100, the higher the earlier"`
	CreatedAt   time.Time               `json:"created_at"`
}

func projectOf(p pool.ProjectView, now time.Time) Project {
	return Project{ID: p.ID, Name: p.Name, Description: p.Description, Quota: p.Quota, Promised: p.Promised, Held: p.Held,
		Left: p.Quota.Sub(p.Promised), StartsAt: p.StartsAt.UTC(), EndsAt: utc(p.EndsAt), Active: p.Active(now),
		Launch: p.Launch, Priority: p.Priority, CreatedAt: p.CreatedAt.UTC()}
}

// Role is a position in a project.
type Role struct {
	ID          int64            `json:"id"`
	ProjectID   int64            `json:"project_id"`
	Name        string           `json:"name"`
	Permission  string           `json:"permission" enum:"owner,manager,member,viewer,custom"`
	Permissions []string         `json:"permissions" doc:"all that it permits"`
	Peak        models.Resources `json:"peak" doc:"the most that a member in it may hold at once"`
	CreatedAt   time.Time        `json:"created_at"`
}

func roleOf(r models.Role) Role {
	return Role{r.ID, r.ProjectID, r.Name, r.Permission, r.Permits().Names(), r.Peak, r.CreatedAt.UTC()}
}

// Member is a person's place in a project.
type Member struct {
	ID         int64            `json:"id"`
	ProjectID  int64            `json:"project_id"`
	UserID     int64            `json:"user_id"`
	Name       string           `json:"name"`
	Email      string           `json:"email"`
	RoleID     int64            `json:"role_id"`
	Role       string           `json:"role"`
	Permission string           `json:"permission" enum:"manager,member"`
	Peak       models.Resources `json:"peak" doc:"of the role"`
	Held       models.Resources `json:"held" doc:"by the member's workspaces, now"`
	Until      *time.Time       `json:"until,omitempty" doc:"participation deadline"`
	CreatedAt  time.Time        `json:"created_at"`

	Department string    `json:"department,omitempty"`
	JoinedAt   time.Time `json:"joined_at" doc:"day of joining, at midnight UTC"`
}

func memberOf(m pool.MemberView) Member {
	return Member{ID: m.ID, ProjectID: m.ProjectID, UserID: m.UserID, Name: m.UserName, Email: m.UserEmail, RoleID: m.RoleID,
		Role: m.RoleName, Permission: m.Permission, Peak: m.Peak, Held: m.Held, Until: utc(m.Until), CreatedAt: m.CreatedAt.UTC(),
		Department: m.Department, JoinedAt: m.JoinedAt.UTC()}
}

// nothing ends an operation that has no answer.
func nothing(err error) (*Nothing, error) {
	if err != nil {
		return nil, err
	}
	return nil, nil
}

// personFound reads an account anew, with its places.
func (a rest) personFound(ctx context.Context, u models.User, err error) (Person, error) {
	if err != nil {
		return Person{}, err
	}
	places, err := a.Ledger.PlacesOf(ctx, actorOf(ctx), u.ID)
	return a.withIdentities(ctx, personOf(u, places, a.Store.Now()), err)
}
