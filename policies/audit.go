package policies

import (
	"cmp"
	"context"
	"encoding/json"

	"weir/models"
)

// What an actor speaks by, in the audit. A person's program speaks by
// "token NAME".
const (
	ViaSession = "session"
	ViaAgent   = "agent"   // a machine's agent reported it
	ViaCommand = "command" // weir admin, on the database itself
	ViaSystem  = "system"  // Weir by itself
)

// Origin is from where a request came.
type Origin struct {
	Address string // of the client, as the server sees it
	Via     string // what it speaks by, unless its actor says; empty: ViaSystem
}

type originKey struct{}

// From notes the origin of a request: what is audited on its behalf bears it.
func From(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
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
	o, _ := q.Context().Value(originKey{}).(Origin)
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

// AuditEntries lists changes, newest first: those of one project for whoever
// may read its audit, all for administrators and auditors. From which address
// somebody acted, and what of the pool was promised beyond its limits, is for
// the latter alone.
func (a *Accounts) AuditEntries(ctx context.Context, actor Actor, f models.AuditFilter, page models.Page) ([]models.AuditEntry, error) {
	if err := a.access.Check(actor, f.ProjectID, "audit", "read"); err != nil {
		return nil, err
	}
	list, err := a.store.Read(ctx).Audit(f, page)
	if !a.access.May(actor, Platform, "audit", "read") {
		for i := range list {
			list[i].Address, list[i].After = "", withoutPool(list[i].After)
		}
	}
	return list, err
}

// withoutPool is what stands in an entry without what it says of the whole
// pool: by how much an approval promised more than it may.
func withoutPool(after string) string {
	var said map[string]json.RawMessage
	if json.Unmarshal([]byte(after), &said) != nil || said["beyond"] == nil {
		return after
	}
	delete(said, "beyond")
	b, err := json.Marshal(said)
	if err != nil {
		return ""
	}
	return string(b)
}
