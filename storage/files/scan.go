package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// counting are the directories whose files count for a project, in the order in which
// they are measured.
func counting(project int64) []string {
	dir := rules.ProjectDir(project)
	return []string{dir, metaPath(project, models.FilePath(dir), trashDir), metaPath(project, models.FilePath(dir), versionsDir)}
}

// scanPath is the place of a directory, below one of [counting], in a measurement. It
// compares in the order of [beneath.Walk].
func scanPath(root int, below string) models.ScanPath {
	return append(models.ScanPath{byte(root + 1)}, strings.ReplaceAll(below, "/", "\x00")...)
}

// scanBegin and scanEnd are before and after all places.
var scanBegin, scanEnd = models.ScanPath{0}, models.ScanPath{255}

// changed is a change of the bytes in a directory; nothing where they do not count.
func changed(project int64, dir string, bytes models.StorageShares) []models.StorageChange {
	for i, root := range counting(project) {
		if rules.Within(dir, root) {
			return []models.StorageChange{{At: scanPath(i, strings.TrimPrefix(dir[len(root):], "/")), Bytes: bytes}}
		}
	}
	return nil
}

// movedBytes is the change when bytes get from one directory to another.
func movedBytes(project int64, from, to string, before, after models.StorageShares) []models.StorageChange {
	return append(changed(project, from, before.Times(-1)), changed(project, to, after)...)
}

const (
	// scanRecorded is after how many entries a measurement records how far it is.
	scanRecorded = 5000
	// scanSlice is after how many entries the next project is measured on.
	scanSlice = 25_000
	// scanBurst is how many entries are read between two pauses.
	scanBurst = 250
)

// scan is a measurement of a project: it adds up its files without holding anything, so
// that it can take hours, and continues where it was after a restart. What the service
// changes behind it is added as it happens. What is changed while its directory is read
// can be wrong until the next time.
type scan struct {
	*Service
	project int64
	kept    models.FilePath // where the item of the trash or the version was
	item    string          // its name
	found   models.StorageShares
	pace    pacer
	entries int // since that was recorded
	total   int
	skipped int
}

// measureDue measures the projects whose last measurement is old, in turn.
func (s *Service) measureDue(ctx context.Context) error {
	for {
		projects, err := s.Store.Read(ctx).ProjectsToMeasure(s.Store.Now().Add(-s.ScanEvery))
		if err != nil || len(projects) == 0 {
			return err
		}
		errs := []error{ctx.Err()}
		for _, id := range projects {
			_, err := s.measure(ctx, id, s.ScanRate)
			errs = append(errs, err)
		}
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
}

// measure continues a measurement for a slice, which compares the use of a project with its
// files, and reports whether it is complete. What operations in progress have written is
// reserved, not used. It fails for a project without a directory, which counts as missing
// once it was measured.
func (s *Service) measure(ctx context.Context, project int64, rate int) (bool, error) {
	s.measuring.Lock()
	defer s.measuring.Unlock()
	use, err := s.Store.Read(ctx).StorageUse(project)
	if err != nil {
		return false, err
	}
	n := &scan{Service: s, project: project, pace: pacer{rate: rate}, found: models.StorageShares{}}
	if use.ScanPath == nil {
		if err := s.recordLost(ctx, project); err != nil {
			return false, fmt.Errorf("record what project %d keeps: %w", project, err)
		}
		use.ScanPath = scanBegin
		if err := s.Store.InTx(ctx, func(q *store.Queries) error { return q.BeginScan(project, scanBegin) }); err != nil {
			return false, err
		}
	}
	first, after := int(use.ScanPath[0])-1, strings.ReplaceAll(string(use.ScanPath[1:]), "\x00", "/")
	for i, root := range counting(project) {
		if i < first {
			continue
		}
		if done, err := n.root(ctx, i, root, i == first, after); !done || err != nil {
			return false, err
		}
	}
	if n.skipped > 0 {
		s.Logger.WarnContext(ctx, "directories of a project cannot be measured: too deep, or no permission", "project", project, "directories",
			n.skipped)
	}
	return true, s.Store.InTx(ctx, func(q *store.Queries) error {
		return errors.Join(q.AdvanceScan(project, scanEnd, n.found), q.FinishScan(project))
	})
}

// root measures what is below one of the roots; continued: after a path.
func (n *scan) root(ctx context.Context, i int, root string, continued bool, after string) (done bool, err error) {
	base, err := n.Root.Dir(root[1:])
	if errors.Is(err, fs.ErrNotExist) && i > 0 {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("measure the files of project %d: %w", n.project, err)
	}
	defer base.Close()
	walk := beneath.NewWalk(base)
	if continued {
		walk = beneath.ContinueWalk(base, after)
	}
	defer func() { n.skipped += walk.Skipped }()
	for {
		path, err := walk.Next(func(path string, info beneath.Info) error {
			n.found[n.whose(ctx, i, root+"/"+path, path, info)] += info.Size
			return n.pause(ctx, 1)
		})
		if errors.Is(err, io.EOF) {
			return true, nil
		}
		// A deep directory costs more.
		if err = errors.Join(err, n.pause(ctx, 1+len(path)/scanBurst)); err != nil {
			return false, err
		}
		if n.entries < scanRecorded {
			continue
		}
		err = n.Store.InTx(ctx, func(q *store.Queries) error { return q.AdvanceScan(n.project, scanPath(i, path), n.found) })
		if n.entries, n.found = 0, (models.StorageShares{}); err != nil || n.total >= scanSlice {
			return false, err
		}
	}
}

// whose is the owner of a file that was found in a directory.
func (n *scan) whose(ctx context.Context, root int, dir, below string, info beneath.Info) int64 {
	if root == 0 {
		return n.ownerOf(n.project, dir, info.UID)
	}
	item, _, _ := strings.Cut(below, "/")
	if item == "" {
		item = info.Name
	}
	if item != n.item {
		id, _ := strconv.ParseInt(item, 10, 64) // only ids are here
		n.item, n.kept = item, n.keptPath(ctx, root, id)
	}
	return n.ownerOf(n.project, string(n.kept), info.UID)
}

// keptPath is where something was that is kept; empty: nothing is recorded of it.
func (n *scan) keptPath(ctx context.Context, root int, id int64) models.FilePath {
	if root == 1 {
		item, _ := n.Store.Read(ctx).TrashedFile(n.project, id)
		return item.Path
	}
	version, _ := n.Store.Read(ctx).FileVersion(n.project, id)
	return version.Path
}

// pause counts entries and keeps to the rate.
func (n *scan) pause(ctx context.Context, entries int) error {
	n.entries, n.total = n.entries+entries, n.total+entries
	return n.pace.pause(ctx, entries)
}

// pacer keeps to a rate, so that others can use the disk too.
type pacer struct {
	rate  int // entries a second; 0: no limit
	burst int // entries since the last pause
}

func (p *pacer) pause(ctx context.Context, entries int) error {
	if p.burst += entries; p.burst < scanBurst {
		return nil
	}
	wait := time.Duration(0)
	if p.rate > 0 {
		wait = time.Duration(p.burst) * time.Second / time.Duration(p.rate)
	}
	p.burst = 0
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// yieldDisk gives the disk to others first, for the thread of this goroutine, which ends
// with it. Some file systems and schedulers ignore it.
func yieldDisk() {
	const process, idle = 1, 3 << 13
	runtime.LockOSThread()
	_, _, _ = unix.Syscall(unix.SYS_IOPRIO_SET, process, 0, idle)
}
