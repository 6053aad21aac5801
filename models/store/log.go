package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"gorm.io/gorm/logger"

	"weir/models"
)

// LogTo makes log the logger of the store and of what uses it, and writes to it a line
// for what each committed transaction changes. Call it before use.
func (s *Store) LogTo(log *slog.Logger) {
	s.log = log
	s.write.Logger, s.read.Logger = statementLogger(log), statementLogger(log)
}

// Log is the logger for errors that nobody is told of.
func (s *Store) Log() *slog.Logger { return cmp.Or(s.log, slog.Default()) }

// slowStatement is how long a statement takes that is logged.
const slowStatement = time.Second

// statementLogger logs statements that fail or are slow.
func statementLogger(log *slog.Logger) logger.Interface {
	return expectedErrorsFilter{logger.NewSlogLogger(log, logger.Config{
		SlowThreshold: slowStatement, LogLevel: logger.Warn, ParameterizedQueries: true})}
}

// expectedErrorsFilter keeps errors that callers handle out of the log: a taken
// name, a request whose client has gone.
type expectedErrorsFilter struct{ logger.Interface }

func (l expectedErrorsFilter) LogMode(level logger.LogLevel) logger.Interface {
	return expectedErrorsFilter{l.Interface.LogMode(level)}
}

// ParamsFilter keeps values out of the log: some are secrets.
func (expectedErrorsFilter) ParamsFilter(_ context.Context, sql string, _ ...any) (string, []any) {
	return sql, nil
}

func (l expectedErrorsFilter) Trace(ctx context.Context, begin time.Time, fc func() (string, int64), err error) {
	if Duplicate(err) || errors.Is(err, context.Canceled) || errors.Is(err, logger.ErrRecordNotFound) {
		err = nil
	}
	if err == nil && time.Since(begin) <= slowStatement {
		return // before gorm composes the text of every statement, to log none
	}
	l.Interface.Trace(ctx, begin, fc, err)
}

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
