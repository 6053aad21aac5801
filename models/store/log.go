package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"weir/models"
)

// logCommitted writes a line for each event of a workspace, each audited change and each
// warning of a committed transaction. A workspace's own changes are among its events.
func (s *Store) logCommitted(ctx context.Context, q *Queries) {
	if s.log == nil {
		return
	}
	for _, e := range q.events {
		s.log.InfoContext(ctx, "workspace "+string(e.State), "workspace", e.WorkspaceID, "project", e.ProjectID,
			"event", e.Message.String())
	}
	for _, e := range q.audit {
		if e.Object != "workspace" {
			s.log.InfoContext(ctx, e.Action+" "+e.Object, logAttrs(e)...)
		}
	}
	for _, n := range q.notified {
		if slices.Contains(models.Warnings, n.kind) {
			s.log.InfoContext(ctx, n.kind, "text", n.text.String(), "link", n.link, "users", n.users)
		}
	}
}

// logAttrs are an entry's fields, with the name, state and reason of what was changed.
func logAttrs(e models.AuditEntry) []any {
	attrs := []any{slog.Int64("id", e.ObjectID)}
	add := func(name, value string) {
		if value != "" {
			attrs = append(attrs, slog.String(name, value))
		}
	}
	var after struct{ Name, State, Reason any }
	_ = json.Unmarshal([]byte(e.After), &after) // a list or nothing has none of them
	text := func(v any) string { s, _ := v.(string); return s }
	add("name", text(after.Name))
	add("state", text(after.State))
	add("reason", text(after.Reason))
	if e.ProjectID != nil {
		attrs = append(attrs, slog.Int64("project", *e.ProjectID))
	}
	add("actor", e.Actor)
	add("address", e.Address)
	return attrs
}
