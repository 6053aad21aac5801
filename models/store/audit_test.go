package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// appendEntry appends one entry in its own transaction.
func appendEntry(t testing.TB, s *store.Store, e models.AuditEntry) {
	t.Helper()
	e.At = s.Now()
	storetest.InTx(t, s, func(q *store.Queries) error { return q.PutAudit(e) })
}

// appendEntries appends n different entries.
func appendEntries(t testing.TB, s *store.Store, n int) {
	t.Helper()
	for i := range n {
		one := int64(1)
		appendEntry(t, s, models.AuditEntry{ActorID: &one, Actor: "a@example.org", Address: "192.0.2.1", Via: "session", Action: "update",
			Object: "project", ObjectID: int64(i), ProjectID: &one, Before: "{}", After: fmt.Sprintf(`{"n":%d}`, i)})
	}
}

func verified(t testing.TB, s *store.Store) models.AuditHead {
	t.Helper()
	head, err := s.VerifyAudit(t.Context(), models.AuditHead{})
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// The encoding must never change: heads that are stored elsewhere would become
// invalid.
func TestAuditEncoding(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		appendEntries(t, s, 2)
		const want = "61963a2f77f912f0be04b83ac5d40f8a205a79adaae7372257e4d4367cedfc42:2"
		if got := verified(t, s).String(); got != want {
			t.Errorf("the head is %s, want %s", got, want)
		}
	})
}

func TestAuditComesWithItsTransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if err := s.Read(t.Context()).PutAudit(models.AuditEntry{}); err == nil {
			t.Error("an entry was taken outside a transaction")
		}
		appendEntries(t, s, 1)
		err := s.InTx(t.Context(), func(q *store.Queries) error {
			return errors.Join(q.PutAudit(models.AuditEntry{At: q.Now(), Action: "lost"}), errSecret)
		})
		if !errors.Is(err, errSecret) {
			t.Fatal(err)
		}
		storetest.InTx(t, s, func(q *store.Queries) error {
			return errors.Join(q.PutAudit(models.AuditEntry{At: q.Now(), Action: "two"}), q.PutAudit(models.AuditEntry{At: q.Now(), Action: "three"}))
		})
		if head := verified(t, s); head.Number != 3 {
			t.Errorf("%d entries, want 3 without a gap", head.Number)
		}
	})
}

// Many servers write, and some transactions fail: the result is one chain.
func TestAuditChainIsLinear(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const writers, each = 8, 20
		var kinds storetest.ErrorCounts
		storetest.Concurrently(writers, func(w int) {
			for i := range each {
				kinds.Add(s.InTx(t.Context(), func(q *store.Queries) error {
					if err := q.PutAudit(models.AuditEntry{At: q.Now(), Actor: fmt.Sprint(w), ObjectID: int64(i)}); err != nil {
						return err
					}
					if i%5 == 4 {
						return models.Conflict("Not this time.")
					}
					return q.PutAudit(models.AuditEntry{At: q.Now(), Actor: fmt.Sprint(w), ObjectID: -int64(i)})
				}))
			}
		})
		kinds.Want(t, writers*each*4/5, models.KindConflict, writers*each/5)
		if head := verified(t, s); head.Number != writers*each*4/5*2 {
			t.Errorf("%d entries", head.Number)
		}
	})
}

// A server that stops inside its transaction does not block the others.
func TestAuditContinuesWithoutAStoppedServer(t *testing.T) {
	s := storetest.Open(t, "postgres")
	inUse, done, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() { ended <- s.LockAudit(t.Context(), inUse, done) }()
	<-inUse
	appendEntries(t, s, 1) // waits until the other has lost its transaction
	close(done)
	if err := <-ended; err == nil {
		t.Error("the transaction that stood still was committed")
	}
	if head := verified(t, s); head.Number != 1 {
		t.Errorf("%d entries", head.Number)
	}
}

// Verification during writes sees a complete chain.
func TestVerifyDuringWrites(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.Concurrently(4, func(i int) {
			for range 25 {
				var err error
				if i == 0 {
					_, err = s.VerifyAudit(t.Context(), models.AuditHead{})
				} else {
					err = s.InTx(t.Context(), func(q *store.Queries) error { return q.PutAudit(models.AuditEntry{At: q.Now()}) })
				}
				if err != nil {
					t.Error(err)
				}
			}
		})
	})
}

func TestAuditIsAppendOnly(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		appendEntries(t, s, 3)
		db := sqlOf(t, s)
		statements := []string{
			"UPDATE audit_entries SET actor = 'x' WHERE id = 2",
			"UPDATE audit_entries SET hash = '' WHERE id = 2",
			"DELETE FROM audit_entries WHERE id = 3",
			"INSERT INTO audit_entries (id, at, actor, action, object, object_id) VALUES (4, '2030-01-02 00:00:00+00:00', 'a', 'b', 'c', 1)",
			"UPDATE audit_head SET number = 2",
			"DELETE FROM audit_head",
		}
		if s.Dialect() == "sqlite" {
			statements = append(statements,
				"INSERT OR REPLACE INTO audit_entries (id, at, actor, action, object, object_id, hash) VALUES (3, '', 'a', 'b', 'c', 1, 'h')",
				"INSERT OR REPLACE INTO audit_head (id, number, hash) VALUES (1, 0, '')")
		} else {
			statements = append(statements, "TRUNCATE audit_entries", "TRUNCATE audit_head")
		}
		for _, statement := range statements {
			if _, err := db.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
				t.Errorf("%s: %v", statement, err)
			}
		}
		if head := verified(t, s); head.Number != 3 {
			t.Errorf("%d entries are left", head.Number)
		}
	})
}

// The owner of the database can drop its triggers. Verification detects the
// changes.
func TestAuditTampering(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		appendEntries(t, s, 3)
		early := verified(t, s)
		appendEntries(t, s, 4)
		db := sqlOf(t, s)
		disarm(t, s, db)
		copyOf := func(id, from string) string {
			return "INSERT INTO audit_entries SELECT " + id + ", at, actor_id, actor, action, object, object_id, project_id, before, after, address, via, previous, hash FROM audit_entries WHERE id = " + from
		}
		for _, c := range []struct {
			name       string
			statements []string
			expected   models.AuditHead
			number     int64
			why        string
		}{
			{"a field", []string{"UPDATE audit_entries SET address = '192.0.2.9' WHERE id = 4"}, models.AuditHead{}, 4, "not as it was written"},
			{"a time", []string{"UPDATE audit_entries SET at = '2001-02-03 04:05:06.000007+00:00' WHERE id = 7"}, models.AuditHead{}, 7, "not as it was written"},
			{"a microsecond", []string{laterByAMicrosecond(s.Dialect(), 6)}, models.AuditHead{}, 6, "not as it was written"},
			{"a field that was absent", []string{"UPDATE audit_entries SET actor_id = NULL WHERE id = 1"}, models.AuditHead{}, 1, "not as it was written"},
			{"a missing entry", []string{"DELETE FROM audit_entries WHERE id = 3"}, models.AuditHead{}, 3, "missing"},
			{"the first entry", []string{"DELETE FROM audit_entries WHERE id = 1"}, models.AuditHead{}, 1, "missing"},
			{"the last entry", []string{"DELETE FROM audit_entries WHERE id = 7"}, models.AuditHead{}, 7, "missing"},
			{"an entry before the first", []string{copyOf("-2", "3")}, models.AuditHead{}, -2, "not written by Weir"},
			{"an entry behind the last", []string{copyOf("8", "7"), "UPDATE audit_entries SET previous = (SELECT hash FROM audit_entries WHERE id = 7) WHERE id = 8"}, models.AuditHead{}, 8, "not as it was written"},
			{"an entry put in between", []string{"UPDATE audit_entries SET id = id + 100 WHERE id > 3", "UPDATE audit_entries SET id = id - 99 WHERE id > 100", copyOf("4", "3")}, models.AuditHead{}, 4, "not as it was written"},
			{"two swapped", []string{"UPDATE audit_entries SET id = 100 WHERE id = 5", "UPDATE audit_entries SET id = 5 WHERE id = 6", "UPDATE audit_entries SET id = 6 WHERE id = 100"}, models.AuditHead{}, 5, "not as it was written"},
			{"an end cut off with its head", []string{"DELETE FROM audit_entries WHERE id > 2", "UPDATE audit_head SET number = 2, hash = (SELECT hash FROM audit_entries WHERE id = 2)"}, early, 3, "missing"},
			{"another head", []string{"UPDATE audit_head SET hash = 'x'"}, models.AuditHead{}, 7, "another one"},
			{"another expectation", nil, models.AuditHead{Number: 2, Hash: early.Hash}, 2, "another one"},
			{"an end that never was", nil, models.AuditHead{Number: 9, Hash: early.Hash}, 8, "missing"},
		} {
			t.Run(c.name, func(t *testing.T) {
				saved := save(t, db)
				defer saved()
				for _, statement := range c.statements {
					if _, err := db.Exec(statement); err != nil {
						t.Fatalf("%s: %v", statement, err)
					}
				}
				_, err := s.VerifyAudit(t.Context(), c.expected)
				var broken *models.BrokenAudit
				if !errors.As(err, &broken) || broken.Number != c.number || !strings.Contains(broken.Reason, c.why) {
					t.Errorf("got %v, want entry %d: …%s…", err, c.number, c.why)
				}
			})
		}
		if _, err := s.VerifyAudit(t.Context(), early); err != nil {
			t.Errorf("untouched, the audit is broken: %v", err)
		}
	})
}

// laterByAMicrosecond changes the time of an entry of the clock's first moment.
func laterByAMicrosecond(dialect string, id int) string {
	if dialect == "postgres" {
		return fmt.Sprintf("UPDATE audit_entries SET at = at + INTERVAL '1 microsecond' WHERE id = %d", id)
	}
	return fmt.Sprintf("UPDATE audit_entries SET at = '2030-01-02 00:00:00.000001+00:00' WHERE id = %d", id)
}

// An entry that is replaced by another that is right in itself does not lead to
// the next one.
func TestAuditReplacedEntry(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		appendEntries(t, s, 2)
		appendEntry(t, s, models.AuditEntry{Actor: "somebody else"}) // follows entry 2
		db := sqlOf(t, s)
		disarm(t, s, db)
		exec := func(statements ...string) {
			t.Helper()
			for _, statement := range statements {
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
		}
		exec("CREATE TABLE forged AS SELECT * FROM audit_entries WHERE id = 3", "DELETE FROM audit_entries WHERE id = 3",
			"UPDATE audit_head SET number = 2, hash = (SELECT hash FROM audit_entries WHERE id = 2)")
		appendEntries(t, s, 3)
		verified(t, s)
		exec("DELETE FROM audit_entries WHERE id = 3", "INSERT INTO audit_entries SELECT * FROM forged")
		_, err := s.VerifyAudit(t.Context(), models.AuditHead{})
		var broken *models.BrokenAudit
		if !errors.As(err, &broken) || broken.Number != 4 || !strings.Contains(broken.Reason, "does not follow from entry 3") {
			t.Errorf("got %v, want entry 4, which does not follow from entry 3", err)
		}
	})
}

// A time is stored in the precision in which it is hashed.
func TestAuditTimes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		at := time.Date(2030, 1, 2, 3, 4, 5, 678_901_999, time.FixedZone("east", 3600))
		storetest.InTx(t, s, func(q *store.Queries) error { return q.PutAudit(models.AuditEntry{At: at}) })
		verified(t, s)
		entries, err := s.Read(t.Context()).Audit(store.AuditFilter{}, store.Page{})
		if want := time.Date(2030, 1, 2, 2, 4, 5, 678_901_000, time.UTC); err != nil || len(entries) != 1 || !entries[0].At.Equal(want) {
			t.Errorf("%+v, %v; want the time %s", entries, err, want)
		}
	})
}

// A forged entry with all following entries, hashes and the head is detected
// only with an earlier head.
func TestForgedAuditNeedsAnEarlierHead(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		storetest.NewClock(s)
		appendEntries(t, s, 4)
		honest := verified(t, s)
		db := sqlOf(t, s)
		disarm(t, s, db)
		for _, statement := range []string{"DELETE FROM audit_entries", "UPDATE audit_head SET number = 0, hash = ''"} {
			if _, err := db.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		appendEntries(t, s, 3)
		appendEntry(t, s, models.AuditEntry{Actor: "somebody else"})
		appendEntries(t, s, 3)
		verified(t, s)
		_, err := s.VerifyAudit(t.Context(), honest)
		var broken *models.BrokenAudit
		if !errors.As(err, &broken) || broken.Number != 4 {
			t.Errorf("got %v", err)
		}
	})
}

// Breaks are found in every batch of a long chain.
func TestLongAudit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		const n = 1203
		storetest.InTx(t, s, func(q *store.Queries) error {
			for i := range n {
				if err := q.PutAudit(models.AuditEntry{At: q.Now(), Actor: "a", ObjectID: int64(i)}); err != nil {
					return err
				}
			}
			return nil
		})
		if head := verified(t, s); head.Number != n {
			t.Errorf("%d of %d entries", head.Number, n)
		}
		db := sqlOf(t, s)
		disarm(t, s, db)
		if _, err := db.Exec("UPDATE audit_entries SET object_id = 5 WHERE id = 1001"); err != nil {
			t.Fatal(err)
		}
		var broken *models.BrokenAudit
		if _, err := s.VerifyAudit(t.Context(), models.AuditHead{}); !errors.As(err, &broken) || broken.Number != 1001 {
			t.Errorf("got %v", err)
		}
	})
}

func TestParseAuditHead(t *testing.T) {
	hash := strings.Repeat("0f", 32)
	want := models.AuditHead{Number: 12, Hash: hash}
	for _, text := range []string{hash + ":12", " " + strings.ToUpper(hash) + ":12\n"} {
		if got, err := models.ParseAuditHead(text); err != nil || got != want {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	if got, err := models.ParseAuditHead(want.String()); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, text := range []string{"", hash, ":12", hash + ":0", hash + ":x", "0f:12", "zz" + hash[2:] + ":1"} {
		if got, err := models.ParseAuditHead(text); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// Entries from before the chain are added to it, also with gaps in the
// sequence.
func TestOldEntriesAreChained(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			s := storetest.Open(t, dialect)
			db := sqlOf(t, s)
			if err := migrations.DownTo(t.Context(), db, dialect, 4); err != nil {
				t.Fatal(err)
			}
			const old = 1100 // more than are chained at once
			for i := range old {
				if _, err := db.Exec(fmt.Sprintf(`INSERT INTO audit_entries (id, at, actor, action, object, object_id)
					VALUES (%d, '2030-01-02 00:00:00.5+00:00', 'a', 'create', 'project', %d)`, 3*i+5, i)); err != nil {
					t.Fatal(err)
				}
			}
			chainUp(t, s)
			appendEntries(t, s, 2)
			if head := verified(t, s); head.Number != old+2 {
				t.Errorf("%d entries are in the chain", head.Number)
			}
			chainUp(t, s) // changes nothing
			first, err := s.Read(t.Context()).Audit(store.AuditFilter{Actor: "a", ObjectID: 7}, store.Page{})
			if err != nil || len(first) != 1 || first[0].ID != 8 {
				t.Errorf("the eighth entry is %+v, %v", first, err)
			}
			if err := migrations.DownTo(t.Context(), db, dialect, 4); err != nil {
				t.Fatal(err)
			}
			// An older program uses the database's sequence.
			if _, err := db.Exec("INSERT INTO audit_entries (at, actor, action, object, object_id) VALUES ('2030-01-02 00:00:00+00:00', 'b', 'c', 'd', 1)"); err != nil {
				t.Fatal(err)
			}
			if _, err := db.Exec("DELETE FROM audit_entries WHERE id < 100"); err != nil {
				t.Errorf("an older schema is append-only: %v", err)
			}
			chainUp(t, s)
			if head := verified(t, s); head.Number != old+3-99 {
				t.Errorf("%d entries are in the second chain", head.Number)
			}
		})
	}
}

func chainUp(t *testing.T, s *store.Store) {
	t.Helper()
	if err := errors.Join(migrations.Up(t.Context(), sqlOf(t, s), s.Dialect()), s.ChainAudit(t.Context())); err != nil {
		t.Fatal(err)
	}
}

func TestAuditFilter(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		start := s.Now()
		two := int64(2)
		for _, e := range []models.AuditEntry{
			{Actor: "a", Action: "create", Object: "project", ObjectID: 1},
			{Actor: "b", Action: "update", Object: "project", ObjectID: 2, ProjectID: &two},
			{Actor: "a", Action: "update", Object: "role", ObjectID: 2, ProjectID: &two},
			{Actor: "a", Action: "update", Object: "role", ObjectID: 3, ProjectID: &two},
		} {
			appendEntry(t, s, e)
			clock.Advance(time.Hour)
		}
		for name, c := range map[string]struct {
			filter store.AuditFilter
			page   store.Page
			want   []int64
		}{
			"all":          {want: []int64{4, 3, 2, 1}},
			"actor":        {filter: store.AuditFilter{Actor: "a"}, want: []int64{4, 3, 1}},
			"action":       {filter: store.AuditFilter{Action: "create"}, want: []int64{1}},
			"object":       {filter: store.AuditFilter{Object: "role"}, want: []int64{4, 3}},
			"id":           {filter: store.AuditFilter{ObjectID: 2}, want: []int64{3, 2}},
			"object's id":  {filter: store.AuditFilter{Object: "role", ObjectID: 2}, want: []int64{3}},
			"project":      {filter: store.AuditFilter{ProjectID: 2, Actor: "a"}, want: []int64{4, 3}},
			"from":         {filter: store.AuditFilter{From: start.Add(2 * time.Hour)}, want: []int64{4, 3}},
			"until":        {filter: store.AuditFilter{Until: start.Add(2 * time.Hour)}, want: []int64{2, 1}},
			"first page":   {page: store.Page{Limit: 2}, want: []int64{4, 3}},
			"second page":  {page: store.Page{Limit: 2, After: 3}, want: []int64{2, 1}},
			"filtered one": {filter: store.AuditFilter{Actor: "a"}, page: store.Page{Limit: 2, After: 3}, want: []int64{1}},
			"nobody":       {filter: store.AuditFilter{Actor: "a\x00"}},
		} {
			entries, err := s.Read(t.Context()).Audit(c.filter, c.page)
			var got []int64
			for _, e := range entries {
				got = append(got, e.ID)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
			}
		}
		_, err := s.Read(t.Context()).Audit(store.AuditFilter{}, store.Page{After: 99})
		kind(t, err, models.KindInvalid)
	})
}

// disarm removes the triggers, as the owner of the database can.
func disarm(t *testing.T, s *store.Store, db *sql.DB) {
	t.Helper()
	statements := []string{"ALTER TABLE audit_entries DISABLE TRIGGER ALL", "ALTER TABLE audit_head DISABLE TRIGGER ALL"}
	if s.Dialect() == "sqlite" {
		statements = nil
		for _, name := range []string{"entries_insert", "entries_update", "entries_delete", "head_insert", "head_update", "head_delete"} {
			statements = append(statements, "DROP TRIGGER audit_"+name)
		}
	}
	for _, statement := range statements {
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
}

// save copies the audit, and returns a function that restores it.
func save(t *testing.T, db *sql.DB) func() {
	t.Helper()
	run := func(statements ...string) {
		for _, statement := range statements {
			if _, err := db.Exec(statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	}
	run("CREATE TABLE saved_entries AS SELECT * FROM audit_entries", "CREATE TABLE saved_head AS SELECT * FROM audit_head")
	return func() {
		run("DELETE FROM audit_entries", "INSERT INTO audit_entries SELECT * FROM saved_entries", "DELETE FROM audit_head",
			"INSERT INTO audit_head SELECT * FROM saved_head", "DROP TABLE saved_entries", "DROP TABLE saved_head")
	}
}

func sqlOf(t testing.TB, s *store.Store) *sql.DB {
	t.Helper()
	db, err := s.SQL()
	if err != nil {
		t.Fatal(err)
	}
	return db
}
