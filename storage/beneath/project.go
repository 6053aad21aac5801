package beneath

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"weir/storage/fsquota"
)

// EnforcesQuotas reports whether the directory's file system enforces project quotas.
func (d *Dir) EnforcesQuotas() bool { return fsquota.Enforced(d.fd()) }

// QuotaProject is the project for whose quota the directory counts; 0: none.
func (d *Dir) QuotaProject() uint32 { return fsquota.Project(d.fd()) }

// SetQuota limits the bytes of a project on the directory's file system; 0: no limit.
func (d *Dir) SetQuota(project uint32, bytes int64) error {
	return d.fail("set quota", ".", fsquota.SetLimit(d.fd(), project, bytes))
}

// QuotaUsed are the bytes on the directory's file system that count for a project.
func (d *Dir) QuotaUsed(project uint32) (int64, error) {
	used, err := fsquota.Used(d.fd(), project)
	return used, d.fail("get quota", ".", err)
}

// AssignTop lets the directory itself count for a project, and what is created in it
// from now on.
func (d *Dir) AssignTop(project uint32) error {
	return d.fail("assign", ".", fsquota.Assign(d.fd(), project, true))
}

// Assign lets the directory with all that is in it, now and later, count for a project.
// Irregular files cannot be assigned. It calls pause for each entry, which can end it
// with an error.
func (d *Dir) Assign(project uint32, pause func() error) error {
	var in *Dir // that is being read
	w := NewWalk(d)
	w.enter = func(dir *Dir) error {
		in = dir
		return passed(dir.AssignTop(project))
	}
	for {
		_, err := w.Next(func(_ string, info Info) error {
			return errors.Join(in.assign(info, project), pause())
		})
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err = errors.Join(err, pause()); err != nil {
			return err
		}
	}
}

// assign lets an entry count for a project.
func (d *Dir) assign(info Info, project uint32) error {
	switch info.Kind {
	case Regular:
		f, _, err := d.Open(info.Name)
		if err != nil {
			return passed(err)
		}
		defer f.Close()
		return passed(d.fail("assign", info.Name, fsquota.Assign(int(f.Fd()), project, false)))
	case Directory:
		sub, err := d.Dir(info.Name)
		if err != nil {
			return passed(err)
		}
		defer sub.Close()
		return sub.Assign(project, func() error { return nil })
	}
	return nil
}

// passed is nil for errors of entries that were removed or replaced meanwhile, or that
// cannot be changed.
func passed(err error) error {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, ErrIrregular) {
		return nil
	}
	return err
}

func (d *Dir) sameFileSystem(other *Dir) bool {
	var a, b unix.Stat_t
	return unix.Fstat(d.fd(), &a) == nil && unix.Fstat(other.fd(), &b) == nil && a.Dev == b.Dev
}

// adopted calls a function that moves an entry to another directory, and lets the entry
// count for the project of that. File systems refuse some moves from one project to
// another.
func (d *Dir) adopted(name string, to *Dir, move func() error) error {
	from, project := d.QuotaProject(), to.QuotaProject()
	if from == project || !d.sameFileSystem(to) {
		return move()
	}
	info, err := d.Stat(name)
	if err != nil {
		return err
	}
	if err := d.assign(info, project); err != nil {
		return errors.Join(err, d.assign(info, from))
	}
	if err := move(); err != nil {
		return errors.Join(err, d.assign(info, from))
	}
	return nil
}
