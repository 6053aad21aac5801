package policies

import (
	"encoding/json"
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

// Change is one audited change. Before and After are anything that JSON can
// show; nil when there was or is nothing.
type Change struct {
	Action  string // create, update, delete, …
	Object  string // project, role, member, …
	ID      int64
	Project int64 // 0 when it belongs to none
	Before  any
	After   any
}

// Audit appends what the actor changes to the audit, within the change's own
// transaction.
func (a Actor) Audit(q *models.Queries, c Change) error {
	e := models.AuditEntry{At: q.Now(), Actor: a.Label(), Action: c.Action, Object: c.Object, ObjectID: c.ID}
	if a.User.ID != 0 {
		e.ActorID = &a.User.ID
	}
	if c.Project != 0 {
		e.ProjectID = &c.Project
	}
	var err error
	if e.Before, err = auditJSON(c.Before); err != nil {
		return err
	}
	if e.After, err = auditJSON(c.After); err != nil {
		return err
	}
	return q.PutAudit(&e)
}

func auditJSON(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}
