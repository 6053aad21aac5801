package policies

import (
	"maps"
	"slices"
	"time"

	"weir/models"
	"weir/models/store"
)

// Actor is on whose behalf a call is made: a signed-in user, a program with a
// user's token, or a background task. The zero Actor is unauthenticated and has
// no rights.
type Actor struct {
	User    models.User
	System  string              // name of a background task; empty for users
	Grants  map[int64]Grant     // by project
	Session string              // hash of the portal session or access token
	Scopes  []models.TokenScope // of the access token; nil: without a token, not limited
	Expires time.Time           // of the access token; zero: without a token
	Via     string              // how the actor was authenticated, for the audit: ViaSession, "token NAME"; empty: as in Origin
	Inside  Inside              // the workspace from inside which it acts; the zero value: from elsewhere
	At      time.Time           // when the grants were read

	SecondFactorDue bool // the sign-in policy requires a second factor, and the account has none
	ByProvider      bool // the session began with an identity provider, which is not affected
}

// Grant is an actor's role in a project with its permissions.
type Grant struct {
	Role        int64 // its id
	Permissions models.Permissions
	Until       *time.Time // nil: not limited
}

// GrantsOf returns the grants of active memberships, by project.
func GrantsOf(memberships []models.MemberView) map[int64]Grant {
	grants := make(map[int64]Grant, len(memberships))
	for _, m := range memberships {
		grants[m.ProjectID] = Grant{m.RoleID, m.Permits(), m.Until}
	}
	return grants
}

// actorOf reads the grants of a user.
func actorOf(q *store.Queries, u models.User) (Actor, error) {
	now := q.Now()
	memberships, err := q.MembershipsOf(u.ID, now)
	return Actor{User: u, At: now, Grants: GrantsOf(memberships)}, err
}

// Inside is a workspace whose programs act as its owner without a token, and its project.
type Inside struct{ Workspace, Project int64 }

// Validity is how long the actor's grants are valid.
func (a Actor) Validity() store.Validity {
	v := store.Validity{Keys: []string{store.RevocationKey("user", a.User.ID)}}
	for project, grant := range a.Grants {
		v.Keys = append(v.Keys, store.RevocationKey("project", project))
		v.EndAt(grant.Until)
	}
	return v
}

// MemberOf reports whether the actor is a member of the project.
func (a Actor) MemberOf(project int64) bool {
	_, ok := a.Grants[project]
	return ok
}

// CanLaunchIn reports whether the actor's role in the project permits to launch
// workspaces.
func (a Actor) CanLaunchIn(project int64) bool {
	return a.hasScope(WorkspaceLaunch) && a.Grants[project].Permissions.Contains(models.WorkspaceLaunch)
}

// hasScope reports whether the actor's access token, if there is one, can be used for a
// right.
func (a Actor) hasScope(right Right) bool {
	return a.Scopes == nil || models.Covers(a.Scopes, right.Scope())
}

// CheckScope returns an error unless the actor's access token, if there is one, can be
// used for a right. Checks of the right include it.
func (a Actor) CheckScope(right Right) error {
	if a.hasScope(right) {
		return nil
	}
	return models.InsufficientScope(right.Scope())
}

// authenticatedAs is an actor whose rights were read again, with the credential of
// another one.
func (a Actor) authenticatedAs(b Actor) Actor {
	a.Session, a.Scopes, a.Expires, a.Via, a.ByProvider = b.Session, b.Scopes, b.Expires, b.Via, b.ByProvider
	return a.limited(b.Inside)
}

// ActInside limits an actor to what programs inside a workspace may do: what the scope
// launch allows its owner in its project. Services limit it further, to the runs of the
// workspace; see [Actor.MayReach].
func (a Actor) ActInside(in Inside, via string) Actor {
	a.Via, a.Scopes = via, []models.TokenScope{models.ScopeLaunch}
	return a.limited(in)
}

// limited takes the rights outside of a workspace's project away.
func (a Actor) limited(in Inside) Actor {
	if in == (Inside{}) {
		return a
	}
	grants := map[int64]Grant{}
	if grant, ok := a.Grants[in.Project]; ok {
		grants[in.Project] = grant
	}
	a.Inside, a.Grants = in, grants
	a.User.Admin, a.User.Auditor = false, false
	return a
}

// MayReach reports whether the actor can reach what belongs to a workspace, or with nil to
// none: from inside of a workspace nothing else.
func (a Actor) MayReach(workspace *int64) bool {
	return a.Inside.Workspace == 0 || workspace != nil && *workspace == a.Inside.Workspace
}

// CanLaunchAnywhere reports whether that is so in any project.
func (a Actor) CanLaunchAnywhere() bool {
	for project := range a.Grants {
		if a.CanLaunchIn(project) {
			return true
		}
	}
	return false
}

// System is the actor of a background task.
func System(name string) Actor { return Actor{System: name} }

// SignedIn reports whether the actor is authenticated.
func (a Actor) SignedIn() bool { return a.User.ID != 0 || a.System != "" }

// MustEnroll reports whether the actor's session permits nothing, because the account
// lacks the second factor that the sign-in policy requires.
func (a Actor) MustEnroll() bool { return a.SecondFactorDue && a.Via == ViaSession && !a.ByProvider }

// CheckUser returns an unauthenticated error unless the actor is a user.
func (a Actor) CheckUser() error {
	if a.User.ID == 0 {
		return unauthenticated(nil)
	}
	return nil
}

// checkAccountWrite refuses actors that cannot change their own account.
func checkAccountWrite(actor Actor) error {
	if err := actor.CheckUser(); err != nil {
		return err
	}
	return actor.CheckScope(AccountWrite)
}

func unauthenticated(err error) error {
	if models.KindOf(err) == models.KindInternal {
		return err
	}
	return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Sign in to continue.")}
}

// Scope is the scope of the actor's queries.
func (a Actor) Scope() store.Scope {
	if a.User.Admin || a.User.Auditor || a.System != "" {
		return store.AllProjects
	}
	return store.Scope{UserID: a.User.ID, At: a.At}
}

// GrantedScope is Scope by the actor's grants alone: it reads no memberships.
func (a Actor) GrantedScope() store.Scope {
	if scope := a.Scope(); scope.All {
		return scope
	}
	return store.Scope{Projects: slices.Sorted(maps.Keys(a.Grants))}
}

// systemPrefix begins the labels of system components.
const systemPrefix = "weir "

// Label names the actor in an audit entry.
func (a Actor) Label() string {
	if a.System != "" {
		return systemPrefix + a.System
	}
	return a.User.Email
}
