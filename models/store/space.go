package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/mattn/go-sqlite3"
	"golang.org/x/sys/unix"

	"weir/models"
)

const (
	// minFreeBytes and minFreeFiles are what each disk must have left for new work.
	minFreeBytes = 64 << 20
	minFreeFiles = 1000
	// reservedBytes are kept free within the file of SQLite: there is room for what must
	// not fail, such as a stop, when others have filled the disk.
	reservedBytes = 16 << 20
	// startBytes are in a file that is removed where a start finds the disk full: SQLite
	// then needs 32 KiB for each 4096 pages of its log.
	startBytes = 1 << 20

	// fullFor is how long a database that had no space for a transaction counts as full.
	fullFor = 30 * time.Second
)

// AddDisk lets new work be refused while the disk with a directory is full. Call it before use.
func (s *Store) AddDisk(of models.Text, dir string) {
	s.space.disks = append(s.space.disks, &disk{of: of, dir: dir})
}

// CheckSpace returns an error if a disk has no space for new work.
func (s *Store) CheckSpace() error {
	now := s.Elapsed()
	if now < time.Duration(s.space.fullBefore.Load()) {
		return full(models.Say("the database"), 0)
	}
	for _, d := range s.space.disks {
		bytes, files, known := d.look(s.Elapsed, s.space.free)
		if known && bytes < minFreeBytes {
			return full(d.of, bytes)
		}
		if known && files < minFreeFiles {
			return models.NoSpace(nil,
				"The disk of %s has too many files: inodes left: %d; needed for new work: %d. Delete files on it. What is running continues.",
				d.of, files, minFreeFiles)
		}
	}
	return nil
}

func full(of models.Text, free int64) error {
	return models.NoSpace(nil,
		"The disk of %s is full: %d MiB is left, and new work needs %d MiB. Free up space on it. What is running continues.",
		of, free>>20, minFreeBytes>>20)
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
	if s.space.dir == "" || s.CheckSpace() != nil {
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
