package policies

import (
	"time"

	"weir/models"
)

// Actor is who is asking: a signed-in person, a program with a person's
// token, or a part of Weir itself. The zero Actor is nobody and may nothing.
type Actor struct {
	User    models.User
	System  string           // name of a background actor; empty for people
	Grants  map[int64]string // project id → permission of the role there
	Session string           // hash of the portal session or access token that speaks
	Via     string           // what that is, for the audit: ViaSession, "token NAME"; empty: as its Origin says
	At      time.Time        // when the grants were read
}

// System is a background part of Weir acting on its own behalf.
func System(name string) Actor { return Actor{System: name} }

// Signed tells whether anybody is asking.
func (a Actor) Signed() bool { return a.User.ID != 0 || a.System != "" }

// Scope is what the actor may see.
func (a Actor) Scope() models.Scope {
	if a.User.Admin || a.System != "" {
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
