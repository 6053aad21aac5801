package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"weir/models"
)

const (
	// minFreeBytes is what the disk of the database must have left for new work.
	minFreeBytes = 64 << 20
	// reservedBytes are kept free within the file of SQLite: there is room for what must
	// not fail, such as a stop, when others have filled the disk.
	reservedBytes = 16 << 20
	// startBytes are in a file that is removed where a start finds the disk full: SQLite
	// then needs 32 KiB for each 4096 pages of its log.
	startBytes = 1 << 20

	// fullFor is how long a database that had no space for a transaction counts as full.
	fullFor = 30 * time.Second
	// spaceFor is how long what a look at the disk found is used.
	spaceFor = time.Second
)

// space is what is known of the space that the database has.
type space struct {
	dir        string       // of SQLite's file; empty: the disk is another machine's
	lookedAt   atomic.Int64 // of Store.Elapsed, plus 1; 0: never
	free       atomic.Int64 // bytes, then
	fullBefore atomic.Int64 // of Store.Elapsed
}

// CheckSpace returns an error if the disk of the database has no space for new work.
func (s *Store) CheckSpace() error {
	if free, full := s.Full(); full {
		return models.NoSpace(nil,
			"The disk of the portal is full: %d MiB is left, and new work needs %d MiB. Free up space on it. What is running continues.",
			free>>20, minFreeBytes>>20)
	}
	return nil
}

// Full reports whether the disk of the database has no space for new work, and the bytes
// that are free; 0 where they are not known.
func (s *Store) Full() (free int64, full bool) {
	now := s.Elapsed()
	if now < time.Duration(s.space.fullBefore.Load()) {
		return s.space.free.Load(), true
	}
	if s.space.dir == "" {
		return 0, false
	}
	if at := s.space.lookedAt.Load(); at == 0 || now-time.Duration(at-1) >= spaceFor {
		free, err := freeBytes(s.space.dir)
		if err != nil {
			return 0, false
		}
		s.space.free.Store(free)
		s.space.lookedAt.Store(int64(now) + 1)
	}
	free = s.space.free.Load()
	return free, free < minFreeBytes
}

// freeBytes are those that ordinary users can write.
func freeBytes(dir string) (int64, error) {
	var fs unix.Statfs_t
	err := unix.Statfs(dir, &fs)
	return int64(fs.Bavail) * fs.Bsize, err
}

// noSpace reports whether a database had no space.
func noSpace(err error) bool {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		return pg.Code == "53100"
	}
	lite, ok := errors.AsType[sqlite3.Error](err)
	return ok && (lite.Code == sqlite3.ErrFull || errors.Is(lite.SystemErrno, unix.ENOSPC))
}

// ofSpace turns the error of a database without space into one that says so.
func (s *Store) ofSpace(err error) error {
	if !noSpace(err) {
		return err
	}
	s.space.fullBefore.Store(int64(s.Elapsed() + fullFor))
	return models.NoSpace(err, "The disk of the database is full. No changes were made. Free up space on it, then try again.")
}

// startFile is removed where there is no space to start.
func (s *Store) startFile() string { return filepath.Join(s.space.dir, "reserve") }

// ReserveSpace keeps space within the file of SQLite, where nobody else can take it, as
// long as the disk has space for all of it; what is missing it adds when called again.
// PostgreSQL's is its administrator's.
func (s *Store) ReserveSpace(ctx context.Context) error {
	if _, full := s.Full(); full || s.space.dir == "" {
		return nil
	}
	err := s.reserve(ctx)
	if noSpace(err) || errors.Is(err, unix.ENOSPC) { // others have just filled the disk
		return nil
	}
	return err
}

func (s *Store) reserve(ctx context.Context) error {
	if _, err := os.Stat(s.startFile()); err != nil {
		if err := os.WriteFile(s.startFile(), make([]byte, startBytes), 0o600); err != nil {
			return err
		}
	}
	var pages, size int64
	db := s.write.WithContext(ctx)
	if err := errors.Join(db.Raw("PRAGMA freelist_count").Scan(&pages).Error, db.Raw("PRAGMA page_size").Scan(&size).Error); err != nil {
		return err
	}
	if pages*size >= reservedBytes/2 {
		return nil
	}
	// Two transactions: pages that one both fills and frees are never written.
	if err := db.Exec("CREATE TABLE IF NOT EXISTS reserved_space AS SELECT zeroblob(?) AS bytes", reservedBytes).Error; err != nil {
		return err
	}
	return db.Exec("DROP TABLE reserved_space").Error
}
