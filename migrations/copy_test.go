package migrations_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// A copy on PostgreSQL has the same rows in every table, and continues the numbers and
// the audit log.
func TestCopy(t *testing.T) {
	source, target := copySource(t), storetest.OpenEmpty(t, "postgres")
	from, to := sqlOf(t, source), sqlOf(t, target)
	up(t, to, "postgres")
	at := time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC)
	storetest.InTx(t, source, func(q *store.Queries) error {
		return q.PutAudit(models.AuditEntry{At: at, Actor: "王 <a@example.org>", Action: "update", Object: "project", ObjectID: 1, Before: `{"name":"a\\"}`, After: "%"})
	})
	if _, err := from.Exec("UPDATE projects SET description = ?, ends_at = ? WHERE id = 1", "a'\"\\\n?$1 🚀", at); err != nil {
		t.Fatal(err)
	}
	copied, err := target.CopyFrom(t.Context(), source)
	if err != nil {
		t.Fatal(err)
	}
	var rows int64
	for table := range tables(t, from, "sqlite") {
		want, got := contents(t, from, table), contents(t, to, table)
		if !slices.Equal(want, got) {
			t.Errorf("%s: copied as\n%q, not\n%q", table, got, want)
		}
		rows += int64(len(want))
	}
	if copied != rows {
		t.Errorf("reports %d rows of %d", copied, rows)
	}
	next := storetest.User(t, target, "next@example.org", false)
	if next.ID != 4 { // the third was deleted
		t.Errorf("the next account has the number %d", next.ID)
	}
	storetest.InTx(t, target, func(q *store.Queries) error {
		return q.PutAudit(models.AuditEntry{At: at, Actor: "b", Action: "create", Object: "user", ObjectID: next.ID})
	})
	if head, err := target.VerifyAudit(t.Context(), models.AuditHead{}); err != nil || head.Number != 2 {
		t.Errorf("the audit log ends at %v, %v", head, err)
	}
	if _, err := to.Exec("DELETE FROM devices"); err == nil {
		t.Error("the copy does not check foreign keys")
	}
}

// A copy back to SQLite has the same rows, too, of one instant, and continues the numbers.
func TestCopyBack(t *testing.T) {
	first, middle, back := copySource(t), storetest.OpenEmpty(t, "postgres"), storetest.OpenEmpty(t, "sqlite")
	up(t, sqlOf(t, middle), "postgres")
	up(t, sqlOf(t, back), "sqlite")
	if _, err := middle.CopyFrom(t.Context(), first); err != nil {
		t.Fatal(err)
	}
	storetest.InTx(t, middle, func(q *store.Queries) error {
		return q.PutAudit(models.AuditEntry{At: time.Date(2030, 1, 2, 3, 4, 5, 678901000, time.UTC), Actor: "a", Action: "update", Object: "project", ObjectID: 1})
	})
	copied, err := back.CopyFrom(t.Context(), middle)
	if err != nil || copied == 0 {
		t.Fatalf("%d rows, %v", copied, err)
	}
	for table := range tables(t, sqlOf(t, middle), "postgres") {
		if want, got := contents(t, sqlOf(t, middle), table), contents(t, sqlOf(t, back), table); !slices.Equal(want, got) {
			t.Errorf("%s: copied as\n%q, not\n%q", table, got, want)
		}
	}
	if next := storetest.User(t, back, "next@example.org", false); next.ID != 4 { // the third was deleted
		t.Errorf("the next account has the number %d", next.ID)
	}
	if head, err := back.VerifyAudit(t.Context(), models.AuditHead{}); err != nil || head.Number != 1 {
		t.Errorf("the audit log ends at %v, %v", head, err)
	}
	if _, err := sqlOf(t, back).Exec("DELETE FROM devices"); err == nil {
		t.Error("the copy does not check foreign keys")
	}
	if _, err := back.CopyFrom(t.Context(), first); err == nil || !strings.Contains(err.Error(), "other kind") {
		t.Errorf("between two of a kind: %v", err)
	}
}

// A copy that is refused changes nothing.
func TestCopyIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		prepare string // of the target
		source  string
		reason  string
	}{
		"not empty":       {prepare: "INSERT INTO departments (name, created_at) VALUES ('d', " + day + ")", reason: "not empty: table departments"},
		"broken audit":    {source: "INSERT INTO " + rows[len(rows)-1], reason: "the audit is broken at entry 1"},
		"broken by check": {prepare: "ALTER TABLE webhooks ADD CHECK (name <> 'w')", reason: "table webhooks"},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := copySource(t), storetest.OpenEmpty(t, "postgres")
			up(t, sqlOf(t, target), "postgres")
			for store, statement := range map[*store.Store]string{source: c.source, target: c.prepare} {
				if _, err := sqlOf(t, store).Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			before := everything(t, target)
			if _, err := target.CopyFrom(t.Context(), source); err == nil || !strings.Contains(err.Error(), c.reason) {
				t.Errorf("got %v, not %q", err, c.reason)
			}
			if after := everything(t, target); !maps.Equal(before, after) {
				t.Errorf("changed from %v to %v", before, after)
			}
		})
	}
}

// copySource is an SQLite database with a row in every table, except an audit entry.
func copySource(t *testing.T) *store.Store {
	t.Helper()
	s := storetest.OpenEmpty(t, "sqlite")
	db := sqlOf(t, s)
	up(t, db, "sqlite")
	for _, row := range append(slices.Clone(rows[:len(rows)-1]), latest...) {
		if _, err := db.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
	if _, err := db.Exec("UPDATE sessions SET data = ?", []byte{0, 0xff, '\\'}); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("DELETE FROM users WHERE id = ?", storetest.User(t, s, "gone@example.org", false).ID); err != nil {
		t.Fatal(err)
	}
	return s
}

// contents lists the rows of a table as text, in any order.
func contents(t *testing.T, db *sql.DB, table string) (list []string) {
	t.Helper()
	found, err := db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	columns, err := found.Columns()
	if err != nil {
		t.Fatal(err)
	}
	for found.Next() {
		values, pointers := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			pointers[i] = &values[i]
		}
		if err := found.Scan(pointers...); err != nil {
			t.Fatal(err)
		}
		row := map[string]string{}
		for i, column := range columns {
			if at, ok := values[i].(time.Time); ok {
				values[i] = at.UTC().Format(time.RFC3339Nano)
			}
			if bytes, ok := values[i].([]byte); ok {
				values[i] = string(bytes)
			}
			row[column] = fmt.Sprintf("%T %[1]v", values[i])
		}
		list = append(list, fmt.Sprint(row))
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return list
}

// everything is the contents of all tables of a target.
func everything(t *testing.T, s *store.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for table := range tables(t, sqlOf(t, s), "postgres") {
		all[table] = fmt.Sprint(contents(t, sqlOf(t, s), table))
	}
	return all
}
