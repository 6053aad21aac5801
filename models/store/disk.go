package store

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
)

// spaceFor is how long what a look at the disk found is used.
const spaceFor = time.Second

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
