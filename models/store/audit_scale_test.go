package store_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// addEntries makes a long audit with a few rare entries.
func addEntries(t testing.TB, s *store.Store, n int) {
	t.Helper()
	series := fmt.Sprintf("generate_series(1, %d) AS g (n)", n)
	moment := "TIMESTAMPTZ '2030-01-02 00:00:00+00' + n * INTERVAL '1 second'"
	if s.Dialect() == "sqlite" {
		series = fmt.Sprintf("(WITH RECURSIVE g (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g WHERE n < %d) SELECT n FROM g)", n)
		moment = "strftime('%Y-%m-%d %H:%M:%S+00:00', '2030-01-02', n || ' seconds')"
	}
	rare := "CASE WHEN n % 20000 = 7 THEN 'rare' ELSE '%s' || n % 3 END"
	db := sqlOf(t, s)
	for _, statement := range []string{
		"INSERT INTO audit_entries (id, at, actor, action, object, object_id, project_id, hash) SELECT n, " + moment + ", " +
			strings.ReplaceAll(rare, "%s", "actor") + ", " + strings.ReplaceAll(rare, "%s", "action") + ", " + strings.ReplaceAll(rare, "%s", "object") +
			", n % 1000 + 1, n % 50 + 1, 'h' FROM " + series,
		"ANALYZE",
	} {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// A page of a long audit takes two queries, and no query scans or sorts the
// whole table.
func TestAuditOfAHundredThousand(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		addEntries(t, s, 100_000)
		var queries []store.Statement
		if err := s.Watch(func(v store.Statement) { queries = append(queries, v) }); err != nil {
			t.Fatal(err)
		}
		day := time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC)
		for name, f := range map[string]store.AuditFilter{
			"all": {}, "actor": {Actor: "actor1"}, "rare actor": {Actor: "rare"}, "action": {Action: "action1"}, "rare action": {Action: "rare"},
			"object": {Object: "object1"}, "rare object": {Object: "rare"}, "number": {ObjectID: 8}, "object and number": {Object: "object1", ObjectID: 8},
			"project": {ProjectID: 8}, "early": {Until: day.Add(time.Hour)}, "late": {From: day.Add(20 * time.Hour)},
			"actor early": {Actor: "actor1", Until: day.Add(time.Hour)}, "absent": {Actor: "nobody"},
		} {
			for _, after := range []int64{0, 90_000} {
				queries = nil
				if _, err := s.Read(t.Context()).Audit(f, store.Page{After: after}); err != nil {
					t.Fatal(err)
				}
				if len(queries) == 0 || len(queries) > 2 {
					t.Errorf("%s: %d queries", name, len(queries))
				}
				for _, q := range queries {
					if plan := explain(t, s, q.SQL, q.Args); scans(plan, name) {
						t.Errorf("%s after %d: %s\n%s", name, after, q.SQL, plan)
					}
				}
			}
		}
	})
}

// scans reports whether a plan scans a table, or sorts more than the rows of
// one object.
func scans(plan, name string) bool {
	for line := range strings.Lines(plan) {
		if strings.Contains(line, "Seq Scan") || strings.Contains(line, "SCAN audit_entries") && !strings.Contains(line, "USING INDEX") {
			return true
		}
		if strings.Contains(line, "USE TEMP B-TREE") && name != "number" {
			return true
		}
	}
	return plan == ""
}

func explain(t *testing.T, s *store.Store, sql string, args []any) string {
	t.Helper()
	prefix := "EXPLAIN "
	if s.Dialect() == "sqlite" {
		prefix = "EXPLAIN QUERY PLAN "
	}
	rows, err := sqlOf(t, s).Query(prefix+sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var plan strings.Builder
	for rows.Next() {
		var a, b, c int
		var line string
		into := []any{&line}
		if s.Dialect() == "sqlite" {
			into = []any{&a, &b, &c, &line}
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		plan.WriteString(line + "\n")
	}
	return plan.String()
}

// BenchmarkAudited measures the cost of the chain: transactions by 16 writers,
// each on its own row. Those named notified send NOTIFY, as every change does;
// the audited ones also append an entry.
func BenchmarkAudited(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		for _, mode := range []string{"silent", "told", "audited"} {
			b.Run(dialect+"/"+mode, func(b *testing.B) {
				s := storetest.Open(b, dialect)
				var turn atomic.Int64
				b.ResetTimer()
				storetest.Concurrently(16, func(w int) {
					for turn.Add(1) <= int64(b.N) {
						if err := s.InTx(context.Background(), func(q *store.Queries) error { return change(q, int64(w), mode) }); err != nil {
							b.Error(err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tx/s")
			})
		}
	}
}

func change(q *store.Queries, writer int64, mode string) error {
	if mode != "silent" {
		q.Touch("user", writer)
	}
	if mode == "audited" {
		err := q.PutAudit(models.AuditEntry{At: q.Now(), Actor: "a@example.org", Action: "update", Object: "account", ObjectID: writer, Before: `{"name":"a"}`, After: `{"name":"b"}`})
		if err != nil {
			return err
		}
	}
	return q.PutSession(models.Session{Token: fmt.Sprint(writer), Data: []byte("x"), ExpiresAt: q.Now().Add(time.Hour)})
}

// BenchmarkVerifyAudit checks a chain of 100,000 entries.
func BenchmarkVerifyAudit(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			s := storetest.Open(b, dialect)
			const n, each = 100_000, 1000
			for range n / each {
				storetest.InTx(b, s, func(q *store.Queries) error {
					for i := range each {
						e := models.AuditEntry{At: q.Now(), Actor: "a@example.org", Action: "update", Object: "project", ObjectID: int64(i), Before: `{"name":"a"}`, After: `{"name":"b"}`}
						if err := q.PutAudit(e); err != nil {
							return err
						}
					}
					return nil
				})
			}
			b.ResetTimer()
			for b.Loop() {
				if head := verified(b, s); head.Number != n {
					b.Errorf("%d entries", head.Number)
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "entries/s")
		})
	}
}
