package store

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
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
	// spaceFor is how long what a look at the disk found is used.
	spaceFor = time.Second
)

// space is what is known of the space that new work needs.
type space struct {
	dir        string // of SQLite's file; empty: the disk is another machine's
	disks      []*disk
	free       func(dir string) (bytes, files int64, err error)
	fullBefore atomic.Int64 // of Store.Elapsed
}

// disk is one that new work needs.
type disk struct {
	of  models.Text
	dir string // on it

	mu           sync.Mutex
	looking      chan struct{} // closed at the end of the look in progress; nil: there is none
	since        time.Duration // when that began, of Store.Elapsed
	lookedAt     time.Duration // when the last one ended, of Store.Elapsed, plus 1; 0: never
	bytes, files int64         // that were free then
}

// look returns what was free within the last second; false if it is not known. A server of files that
// does not answer holds up nobody for longer than a second in all: its look is not repeated until it ends.
func (d *disk) look(elapsed func() time.Duration, free func(string) (bytes, files int64, err error)) (bytes, files int64, known bool) {
	now := elapsed()
	d.mu.Lock()
	if d.lookedAt != 0 && now-(d.lookedAt-1) < spaceFor {
		defer d.mu.Unlock()
		return d.bytes, d.files, true
	}
	if d.looking == nil {
		d.looking, d.since = make(chan struct{}), now
		go func() { // it ends with the look, which nothing can interrupt
			bytes, files, err := free(d.dir)
			d.mu.Lock()
			defer d.mu.Unlock()
			close(d.looking)
			if d.looking = nil; err == nil {
				d.bytes, d.files, d.lookedAt = bytes, files, elapsed()+1
			}
		}()
	}
	ended, wait := d.looking, spaceFor-(now-d.since)
	d.mu.Unlock()
	select {
	case <-ended:
	case <-time.After(wait):
		return 0, 0, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes, d.files, d.lookedAt > d.since
}

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

// freeSpace is the bytes and files that ordinary users can add; file systems without a limit of
// files have as many as there can be.
func freeSpace(dir string) (bytes, files int64, err error) {
	var fs unix.Statfs_t
	if err = unix.Statfs(dir, &fs); err != nil {
		return 0, 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, freeFiles(fs.Files, fs.Ffree), nil
}

// freeFiles is how many of all files of a file system are free. Where they are not limited, there are none at all,
// or, as CephFS has it, more free ones.
func freeFiles(all, free uint64) int64 {
	if all == 0 || free > all {
		return math.MaxInt64
	}
	return int64(free)
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
