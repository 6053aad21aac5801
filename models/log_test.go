package models_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"testing"

	"weir/models"
	"weir/models/modelstest"
)

func TestLogOfCommittedChanges(t *testing.T) {
	modelstest.Each(t, func(t *testing.T, s *models.Store) {
		var log bytes.Buffer
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		w := newWorld(t, s)
		put := func(q *models.Queries, e models.AuditEntry) {
			e.At, e.Actor = q.Now(), "Ada"
			if err := q.PutAudit(e); err != nil {
				t.Fatal(err)
			}
		}
		modelstest.InTx(t, s, func(q *models.Queries) error {
			put(q, models.AuditEntry{Action: "update", Object: "provider", ObjectID: 7, After: `{"state":"lost","reason":"no heartbeat","secret":"s3cret"}`})
			put(q, models.AuditEntry{Action: "launch", Object: "workspace", ObjectID: 9}) // its events tell
			return nil
		})
		err := s.InTx(t.Context(), func(q *models.Queries) error {
			put(q, models.AuditEntry{Action: "delete", Object: "role"})
			return errors.New("rolled back")
		})
		if err == nil {
			t.Fatal("the transaction committed")
		}
		var lines []string
		for line := range strings.Lines(log.String()) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ") // the time
			lines = append(lines, line)
		}
		want := []string{
			`level=INFO msg="workspace requested" workspace=` + strconv.FormatInt(w.workspace.ID, 10) + ` project=` + strconv.FormatInt(w.project.ID, 10) + ` event=Requested.`,
			`level=INFO msg="update provider" id=7 state=lost reason="no heartbeat" actor=Ada`,
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	})
}
