package store_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// outOfSpace is a statement for which each database has no space.
var outOfSpace = map[string][]string{
	"sqlite":   {"PRAGMA max_page_count = 1", "CREATE TABLE large AS SELECT zeroblob(1 << 26)"}, // 1 is at least what there is
	"postgres": {"DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = 'disk_full'; END $$"},
}

// A transaction without space changes nothing and says so; new work is refused for a
// while.
func TestNoSpace(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		if err := s.CheckSpace(); err != nil {
			t.Fatalf("before: %v", err)
		}
		err := s.InTx(t.Context(), func(q *store.Queries) error {
			if err := q.CreateUser(&models.User{Email: "ada@example.org", Name: "Ada"}); err != nil {
				return err
			}
			for _, statement := range outOfSpace[s.Dialect()] {
				if err := q.Exec(statement); err != nil {
					return err
				}
			}
			return nil
		})
		if e, ok := errors.AsType[*models.Error](err); !ok || e.Kind != models.KindUnavailable || e.Status() != http.StatusInsufficientStorage {
			t.Errorf("the transaction: %v", err)
		}
		if _, err := s.Read(t.Context()).UserByEmail("ada@example.org"); models.KindOf(err) != models.KindNotFound {
			t.Errorf("the user: %v", err)
		}
		if e, ok := errors.AsType[*models.Error](s.CheckSpace()); !ok || e.Kind != models.KindUnavailable || e.Status() != http.StatusInsufficientStorage {
			t.Errorf("afterwards: %v", e)
		}
		clock.Advance(31 * time.Second)
		if err := s.CheckSpace(); err != nil {
			t.Errorf("half a minute later: %v", err)
		}
	})
}

// Space is reserved within the file, once.
func TestReserveSpace(t *testing.T) {
	s := storetest.Open(t, "sqlite")
	free := func() (pages int64) {
		db, err := s.SQL()
		if err == nil {
			err = db.QueryRowContext(t.Context(), "PRAGMA freelist_count").Scan(&pages)
		}
		if err != nil {
			t.Fatal(err)
		}
		return pages
	}
	for range 2 {
		if err := s.ReserveSpace(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := free() * 4096; got < 16<<20 || got > 17<<20 {
			t.Errorf("%d bytes are reserved", got)
		}
	}
}
