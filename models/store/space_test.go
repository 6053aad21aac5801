package store_test

import (
	"errors"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
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

// New work is refused while any of the disks is full, of bytes or of files, which the refusal names.
func TestDisks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		s.AddDisk(models.Say("the workspaces"), "/run of it")
		s.AddDisk(models.Say("the shared directories"), "/shared")
		bytes, files := map[string]int64{}, map[string]int64{}
		s.SetFree(func(dir string) (int64, int64, error) {
			if strings.HasPrefix(dir, "/run of it") && bytes[dir] < 0 {
				return 0, 0, errors.New("not there")
			}
			return 1<<40 - bytes[dir], 1<<30 - files[dir], nil
		})
		for _, c := range []struct {
			dir          string
			bytes, files int64
			says         string
		}{
			{"", 0, 0, ""},
			{"/run of it", 1<<40 - 5<<20, 0, "The disk of the workspaces is full: 5 MiB is left, and new work needs 64 MiB."},
			{"/run of it", -1, 0, ""},
			{"/shared", 1<<40 - 64<<20, 0, ""},
			{"/shared", 1<<40 - 64<<20 + 1, 0, "The disk of the shared directories is full: 63 MiB is left"},
			{"/shared", 0, 1<<30 - 999, "The disk of the shared directories has too many files: inodes left: 999; needed for new work: 1000."},
		} {
			clear(bytes)
			clear(files)
			bytes[c.dir], files[c.dir] = c.bytes, c.files
			clock.Advance(time.Second)
			err := s.CheckSpace()
			if c.says == "" && err != nil || c.says != "" && (models.KindOf(err) != models.KindUnavailable || !strings.Contains(err.Error(), c.says)) {
				t.Errorf("%s: %v", c.dir, err)
			}
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

// A disk of a server that does not answer is looked at once, refuses nothing, and counts again when it answers.
func TestDiskThatDoesNotAnswer(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		s.AddDisk(models.Say("the shared directories"), "/shared")
		var looks atomic.Int64
		answer := make(chan struct{})
		s.SetFree(func(dir string) (int64, int64, error) {
			if dir != "/shared" {
				return 1 << 40, 1 << 30, nil
			}
			looks.Add(1)
			<-answer
			return 0, 0, nil
		})
		for range 3 {
			if err := s.CheckSpace(); err != nil {
				t.Errorf("while it does not answer: %v", err)
			}
			clock.Advance(time.Second)
		}
		if n := looks.Load(); n != 1 {
			t.Errorf("it was looked at %d times", n)
		}
		close(answer)
		for tries := 0; s.CheckSpace() == nil; tries++ { // until the look has ended
			if tries > 10_000 {
				t.Fatal("it does not count when it answers")
			}
			time.Sleep(time.Millisecond)
		}
	})
}

// File systems without a number of files say so in several ways.
func TestFilesAreNotLimited(t *testing.T) {
	for _, c := range []struct {
		all, free uint64
		want      int64
	}{{0, 0, math.MaxInt64}, {5000, math.MaxUint64, math.MaxInt64}, {5000, 900, 900}, {5000, 0, 0}} {
		if got := store.FreeFiles(c.all, c.free); got != c.want {
			t.Errorf("%d of %d: %d", c.free, c.all, got)
		}
	}
}
