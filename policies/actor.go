package policies

import (
	"time"

	"weir/models"
)

// Actor is who is asking: a signed-in person, a program with a person's
// token, or a part of Weir itself. The zero Actor is nobody and may nothing.
type Actor struct {
	User    models.User
	System  string          // name of a background actor; empty for people
	Grants  map[int64]Grant // by project
	Session string          // hash of the portal session or access token that speaks
	Via     string          // what that is, for the audit: ViaSession, "token NAME"; empty: as its Origin says
	At      time.Time       // when the grants were read
}

// Grant is what an actor's role in a project gives.
type Grant struct {
	Role        int64 // its id
	Permissions models.Permissions
}

// GrantsOf is what active memberships give, by project.
func GrantsOf(memberships []models.MemberView) map[int64]Grant {
	grants := make(map[int64]Grant, len(memberships))
	for _, m := range memberships {
		grants[m.ProjectID] = Grant{m.RoleID, m.Permits()}
	}
	return grants
}

// MemberOf tells whether the actor has a place in the project.
func (a Actor) MemberOf(project int64) bool {
	_, ok := a.Grants[project]
	return ok
}

// MayLaunchIn tells whether the actor's role in the project lets it launch
// workspaces.
func (a Actor) MayLaunchIn(project int64) bool {
	return a.Grants[project].Permissions.Contains(models.WorkspaceLaunch)
}

// MayLaunch tells whether there is a project in which that is so.
func (a Actor) MayLaunch() bool {
	for _, g := range a.Grants {
		if g.Permissions.Contains(models.WorkspaceLaunch) {
			return true
		}
	}
	return false
}

// System is a background part of Weir acting on its own behalf.
func System(name string) Actor { return Actor{System: name} }

// Signed tells whether anybody is asking.
func (a Actor) Signed() bool { return a.User.ID != 0 || a.System != "" }

// Scope is what the actor may see.
func (a Actor) Scope() models.Scope {
	if a.User.Admin || a.User.Auditor || a.System != "" {
		return models.Everything
	}
	return models.Scope{UserID: a.User.ID, At: a.At}
}

// Label names the actor in an audit entry.
func (a Actor) Label() string {
	if a.System != "" {
		return "weir " + a.System
	}
	return a.User.Email
}
