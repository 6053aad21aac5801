package storage

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// OwnerOf returns the owner of a file.
func OwnerOf(info fs.FileInfo) (uid, gid int) {
	st := info.Sys().(*syscall.Stat_t)
	return int(st.Uid), int(st.Gid)
}

// setAttributes gives an entry of a directory the owner and the permissions that the
// rules want for its path.
func (d *Directories) setAttributes(dir *beneath.Dir, info beneath.Info, project int64, path string) error {
	kind := rules.File
	if info.Kind == beneath.Directory {
		kind = rules.Directory
	}
	is := rules.Attributes{UID: int64(info.UID), GID: int64(info.GID), Mode: info.Mode}
	want, err := rules.Owners{Range: d.ids, UID: int64(d.uid)}.Attributes(project, path, kind, is)
	if err != nil || want == is {
		return err
	}
	return dir.SetOwner(info, int(want.UID), int(want.GID), want.Mode)
}

const (
	// savedEvery is how many entries are done between two records of the progress.
	savedEvery = 1000
	// maxLinked is how many files with several names a pass keeps in mind.
	maxLinked = 100_000
)

// ownerPass gives all files of a project their owners and permissions. It goes through
// the directories in the order of their names, parents first.
type ownerPass struct {
	*Directories
	root    *beneath.Root
	project int64
	after   string                    // the directories up to this one are done
	save    func(cursor string) error // records the progress
	done    int                       // entries since the last record
	linked  map[uint64][]string       // names, by inode, of files with several
}

// correct runs a pass.
func (d *Directories) correct(ctx context.Context, project int64, after string, save func(cursor string) error) error {
	root, err := beneath.OpenRoot(d.root, beneath.Owner{})
	if err != nil {
		return err
	}
	defer root.Close()
	p := &ownerPass{Directories: d, root: root, project: project, after: after, save: save, linked: map[uint64][]string{}}
	top := rules.ProjectDir(project)
	if err := p.one(top, func(beneath.Info) bool { return true }); err != nil {
		return err
	}
	if err := p.walk(ctx, top); err != nil {
		return err
	}
	for inode, names := range p.linked {
		isAll := func(i beneath.Info) bool { return i.Inode == inode && i.Links == uint64(len(names)) }
		if err := p.one(names[0], isAll); err != nil {
			return err
		}
	}
	return nil
}

// one corrects what is at a path, if it is what is expected.
func (p *ownerPass) one(path string, expected func(beneath.Info) bool) error {
	above, name := rules.Split(path)
	dir, err := p.root.Dir(above[1:])
	if err != nil {
		return gone(err)
	}
	defer dir.Close()
	info, err := dir.Stat(name)
	if err != nil || !expected(info) {
		return gone(err)
	}
	return gone(p.setAttributes(dir, info, p.project, path))
}

// walk corrects what is in a directory and below it. No directory is open while those
// below it are walked, so that no tree is too deep.
func (p *ownerPass) walk(ctx context.Context, path string) error {
	dir, err := p.root.Dir(path[1:])
	if err != nil {
		return gone(err)
	}
	below, err := p.entries(ctx, dir, path)
	if err = errors.Join(err, dir.Close()); err != nil {
		return err
	}
	if p.done >= savedEvery && !p.passed(path) {
		p.done = 0
		if err := p.save(path); err != nil {
			return err
		}
		models.Failpoint("owners.saved")
	}
	slices.Sort(below)
	for _, name := range below {
		if child, ok := rules.Clean(rules.Join(path, name)); ok { // not too long for the kernel
			if err := p.walk(ctx, child); err != nil {
				return err
			}
		}
	}
	return nil
}

// entries corrects the entries of a directory and returns the directories among them.
func (p *ownerPass) entries(ctx context.Context, dir *beneath.Dir, path string) (below []string, err error) {
	passed := p.passed(path)
	if !passed && path != rules.ProjectDir(p.project) {
		if err := gone(dir.Share()); err != nil {
			return nil, err
		}
	}
	for names, err := range dir.Names() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
		for _, name := range names {
			info, err := dir.Stat(name)
			if err != nil {
				continue // removed since
			}
			if info.Kind == beneath.Directory {
				below = append(below, name)
			}
			if passed {
				continue
			}
			p.done++
			if err := p.entry(dir, info, rules.Join(path, name)); err != nil {
				return nil, err
			}
		}
	}
	return below, nil
}

// entry corrects one entry. A file with several names could be one of another directory:
// it is corrected when all its names were found.
func (p *ownerPass) entry(dir *beneath.Dir, info beneath.Info, path string) error {
	if info.Kind != beneath.Directory && info.Links > 1 {
		if len(p.linked) < maxLinked {
			p.linked[info.Inode] = append(p.linked[info.Inode], path)
		}
		return nil
	}
	return gone(p.setAttributes(dir, info, p.project, path))
}

// passed reports whether an earlier part of the pass has corrected a directory's entries.
func (p *ownerPass) passed(path string) bool {
	return p.after != "" && strings.ReplaceAll(path, "/", "\x00") <= strings.ReplaceAll(p.after, "/", "\x00")
}

// gone ignores the errors of what was removed or replaced meanwhile.
func gone(err error) error {
	for _, harmless := range []error{fs.ErrNotExist, beneath.ErrIrregular, beneath.ErrName, unix.ENOTDIR, unix.ESTALE} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	return err
}
