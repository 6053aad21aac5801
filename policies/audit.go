package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
)

// Change is one audited change. Before and After are encoded as JSON; nil means
// that the object did not or does not exist.
type Change struct {
	Action  string // create, update, delete, …
	Object  string // project, role, member, …
	ID      int64
	Project int64 // 0 for none
	Before  any
	After   any
}

// Audit records a change by the actor in the audit, within the transaction of
// the change.
func (a Actor) Audit(q *store.Queries, c Change) error { return a.AuditIn(q.Context(), q, c) }

// AuditIn is Audit for a request with a context of its own in a transaction of several.
func (a Actor) AuditIn(ctx context.Context, q *store.Queries, c Change) error {
	o, _ := ctx.Value(originKey{}).(Origin)
	e := models.AuditEntry{At: q.Now(), Actor: a.Label(), Address: o.Address, Via: cmp.Or(a.Via, o.Via, ViaSystem),
		Action: c.Action, Object: c.Object, ObjectID: c.ID}
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
	return q.PutAudit(e)
}

func auditJSON(v any) (string, error) {
	if v == nil {
		return "", nil
	}
	b, err := json.Marshal(v)
	return string(b), err
}

// AuditQuery selects entries of the audit log; a zero field matches all.
type AuditQuery struct {
	Actor     string    `query:"actor" maxLength:"254" doc:"actor: the email address or the full name of a user, or a system component"`
	Action    string    `query:"action" maxLength:"100" doc:"action, such as create, update or delete"`
	Object    string    `query:"object" maxLength:"100" doc:"resource type, such as project"`
	ObjectID  int64     `query:"object_id" minimum:"1" doc:"ID of the resource"`
	ProjectID int64     `query:"project_id" minimum:"1" doc:"project ID; absent for the project with the given name, or all"`
	Project   string    `query:"project_name" maxLength:"100" doc:"exact project name; alternative to project_id"`
	From      time.Time `query:"from" doc:"start time, inclusive"`
	Until     time.Time `query:"until" doc:"end time, exclusive"`
}

// AuditEntries lists changes, newest first: of one project, or all for
// administrators and auditors. Addresses of clients, and by how much approvals
// exceeded the capacity, are for the latter only.
func (a *Accounts) AuditEntries(ctx context.Context, actor Actor, in AuditQuery, page store.Page) ([]models.AuditEntry, error) {
	q := a.store.Read(ctx)
	if name := strings.TrimSpace(in.Project); in.ProjectID == 0 && name != "" {
		p, err := q.ProjectByName(actor.Scope(), name)
		if err != nil {
			return nil, models.NotFoundAs(err, models.Invalid("project_name", "no project has this name"))
		}
		in.ProjectID = p.ID
	}
	if err := a.access.Check(actor, in.ProjectID, AuditRead); err != nil {
		return nil, err
	}
	f := store.AuditFilter{Action: in.Action, Object: in.Object, ObjectID: in.ObjectID, ProjectID: in.ProjectID,
		From: in.From, Until: in.Until}
	var err error
	if f.Actor, err = a.auditedActor(q, actor, in); err != nil {
		return nil, err
	}
	list, err := q.Audit(f, page)
	if !a.access.May(actor, Platform, AuditRead) {
		for i := range list {
			list[i].Address, list[i].After = "", withoutCapacity(list[i].After)
		}
	}
	return list, err
}

// auditedActor is how the audit log names an actor. A user's full name is known to those
// who may list the accounts, and to others where the user is or was a member.
func (a *Accounts) auditedActor(q *store.Queries, reader Actor, in AuditQuery) (string, error) {
	name := strings.TrimSpace(in.Actor)
	switch {
	case strings.HasPrefix(name, systemPrefix), strings.HasPrefix(name, models.ServiceAccountPrefix):
		return name, nil // people could call themselves like that
	case name == "" || strings.Contains(name, "@"):
		return strings.ToLower(name), nil
	}
	project := in.ProjectID
	if a.access.May(reader, Platform, UserRead) {
		project = 0
	}
	users, err := q.UsersNamed(name, project)
	switch {
	case len(users) > 1:
		return "", models.Invalid("actor", "%d accounts have this name; enter an email address", len(users))
	case len(users) == 1:
		return users[0].Email, nil
	}
	return name, err
}

// withoutCapacity removes from an entry by how much an approval exceeded the
// capacity of the pool.
func withoutCapacity(after string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(after), &fields) != nil || fields["beyond"] == nil {
		return after
	}
	delete(fields, "beyond")
	b, err := json.Marshal(fields)
	if err != nil {
		return ""
	}
	return string(b)
}
