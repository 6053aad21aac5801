package store_test

import (
	"bytes"
	"errors"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func TestLogOfCommittedChanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		var log bytes.Buffer
		s.LogTo(slog.New(slog.NewTextHandler(&log, nil)))
		w := newWorld(t, s)
		put := func(q *store.Queries, e models.AuditEntry) {
			e.At, e.Actor = q.Now(), "Ada"
			if err := q.PutAudit(e); err != nil {
				t.Fatal(err)
			}
		}
		notify := func(q *store.Queries, kind string) error {
			return q.Notify([]int64{w.user.ID}, models.Notification{Kind: kind, Text: models.Say("This is a test. Email delivery works."), Link: "/pool"})
		}
		storetest.InTx(t, s, func(q *store.Queries) error {
			put(q, models.AuditEntry{Action: "update", Object: "provider", ObjectID: 7, After: `{"state":"lost","reason":"no heartbeat","secret":"s3cret"}`})
			put(q, models.AuditEntry{Action: "launch", Object: "workspace", ObjectID: 9})                                 // its events tell
			return errors.Join(notify(q, models.NotificationQuotaNearlyUsed), notify(q, models.NotificationProviderLost)) // of which the audit tells
		})
		err := s.InTx(t.Context(), func(q *store.Queries) error {
			put(q, models.AuditEntry{Action: "delete", Object: "role"})
			return errors.Join(notify(q, models.NotificationQuotaNearlyUsed), errors.New("rolled back"))
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
			`level=INFO msg=quota.nearly-used text="This is a test. Email delivery works." link=/pool users=[` + strconv.FormatInt(w.user.ID, 10) + `]`,
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
		if got, want := s.CountNotified(), map[string]int64{models.NotificationQuotaNearlyUsed: 1, models.NotificationProviderLost: 1}; !maps.Equal(got, want) {
			t.Errorf("counted %v, want %v", got, want)
		}
	})
}
