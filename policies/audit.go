package policies

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"weir/models"
	"weir/models/store"
)

// How an actor was authenticated, in the audit. For programs of users it is
// "token NAME".
const (
	ViaSession = "session"
	ViaAgent   = "agent"   // a report of a provider's agent
	ViaCommand = "command" // weir admin, directly on the database
	ViaSystem  = "system"  // a background task
)

// Origin is where a request came from.
type Origin struct {
	Address   string // of the client, as the server sees it
	UserAgent string // of the client, as it says
	Via       string // used when the actor has no Via; empty: ViaSystem
}

type originKey struct{}

// WithOrigin adds the origin of a request to its context, for the audit.
func WithOrigin(ctx context.Context, o Origin) context.Context {
	return context.WithValue(ctx, originKey{}, o)
}

// UserAgent is how the client of the request of a context calls itself, in at most 300
// bytes of text.
func UserAgent(ctx context.Context) string {
	o, _ := ctx.Value(originKey{}).(Origin)
	return strings.ToValidUTF8(o.UserAgent[:min(len(o.UserAgent), 300)], "")
}

// ClientAddress is the address of the client of the request of a context; empty: there is
// none.
func ClientAddress(ctx context.Context) string {
	o, _ := ctx.Value(originKey{}).(Origin)
	return o.Address
}

// clientOf is the client of the request of a context; empty: there is none.
func clientOf(ctx context.Context) string { return network(ClientAddress(ctx)) }

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

// AuditEntries lists changes, newest first: of one project, or all for
// administrators and auditors. Addresses of clients, and by how much approvals
// exceeded the capacity, are for the latter only.
func (a *Accounts) AuditEntries(ctx context.Context, actor Actor, f store.AuditFilter, page store.Page) ([]models.AuditEntry, error) {
	if err := a.access.Check(actor, f.ProjectID, AuditRead); err != nil {
		return nil, err
	}
	list, err := a.store.Read(ctx).Audit(f, page)
	if !a.access.May(actor, Platform, AuditRead) {
		for i := range list {
			list[i].Address, list[i].After = "", withoutCapacity(list[i].After)
		}
	}
	return list, err
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
