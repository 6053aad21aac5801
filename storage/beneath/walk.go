package beneath

import (
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Walk visits a directory and those below it, each before those in it, in the order of
// their names. It keeps nothing open between two of them and a bounded number of names,
// whatever the tree, so it can also be continued later at any path.
type Walk struct {
	base    *Dir
	levels  []level // from the base to the last visited directory
	visited bool    // the base

	enter func(*Dir) error // of each directory before it is read; nil: nothing

	// Skipped counts directories that could not be read, because their path is longer
	// than maxWalked or because of their mode.
	Skipped int
}

// level is a directory on the way to the last visited one.
type level struct {
	name     string
	after    string   // the last visited directory in it
	children []string // the next ones
	more     bool     // there can be others after these
}

const (
	// maxChildren is how many names of a directory are kept at a time.
	maxChildren = 10_000
	// maxWalked is the length in bytes of the longest path. Its processing takes time in
	// proportion to its square.
	maxWalked = 16 << 10
	// maxResolved is the length of what is resolved in one system call.
	maxResolved = 4000
)

// NewWalk begins at a directory. It does not close it.
func NewWalk(base *Dir) *Walk { return &Walk{base: base} }

// ContinueWalk continues after a path that Next has returned.
func ContinueWalk(base *Dir, after string) *Walk {
	w := &Walk{base: base, visited: true, levels: []level{{more: true}}}
	if after != "" {
		for name := range strings.SplitSeq(after, "/") {
			w.levels[len(w.levels)-1].after = name
			w.levels = append(w.levels, level{name: name, more: true})
		}
	}
	return w
}

// Next visits the next directory and returns its path below the base, which is "". It
// calls entry with this path for everything in it but directories. The error after the
// last directory is io.EOF.
func (w *Walk) Next(entry func(path string, info Info) error) (string, error) {
	if !w.visited {
		w.visited = true
		w.levels = []level{{}}
		return "", w.read(entry)
	}
	for len(w.levels) > 0 {
		top := &w.levels[len(w.levels)-1]
		if len(top.children) == 0 && top.more {
			if err := w.read(nil); err != nil {
				return "", err
			}
		}
		if len(top.children) == 0 {
			w.levels = w.levels[:len(w.levels)-1]
			continue
		}
		name := top.children[0]
		top.children, top.after = top.children[1:], name
		w.levels = append(w.levels, level{name: name})
		return w.path(), w.read(entry)
	}
	return "", io.EOF
}

func (w *Walk) path() string {
	names := make([]string, 0, len(w.levels))
	for _, l := range w.levels[1:] {
		names = append(names, l.name)
	}
	return strings.Join(names, "/")
}

// read reads the next children of the last level; entry is nil if the rest was visited.
func (w *Walk) read(entry func(string, Info) error) error {
	l := &w.levels[len(w.levels)-1]
	l.more = false
	path := w.path()
	if len(path) > maxWalked {
		w.Skipped++
		return nil
	}
	dir, err := w.base.below(path)
	if err != nil {
		return w.skip(err)
	}
	defer dir.Close()
	if w.enter != nil {
		if err := w.enter(dir); err != nil {
			return err
		}
	}
	for batch, err := range dir.Names() {
		if err != nil {
			return w.skip(err)
		}
		for _, name := range batch {
			if entry == nil && name <= l.after {
				continue
			}
			info, err := dir.Stat(name)
			if err != nil {
				continue // removed since
			}
			if info.Kind == Directory {
				l.keep(name)
			} else if entry != nil {
				if err := entry(path, info); err != nil {
					return err
				}
			}
		}
	}
	slices.Sort(l.children)
	return nil
}

// keep keeps a name if it is one of the next.
func (l *level) keep(name string) {
	if l.children = append(l.children, name); len(l.children) < 2*maxChildren {
		return
	}
	slices.Sort(l.children)
	l.children, l.more = l.children[:maxChildren], true
}

// skip passes directories that were removed or replaced, or that cannot be read.
func (w *Walk) skip(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission):
		w.Skipped++
		return nil
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, ErrIrregular):
		return nil
	}
	return err
}

// below opens a directory by a path of any length; "" is the directory itself.
func (d *Dir) below(path string) (*Dir, error) {
	dir := d
	for {
		part, rest := path, ""
		if len(path) > maxResolved {
			at := strings.LastIndexByte(path[:maxResolved], '/')
			part, rest = path[:at], path[at+1:]
		}
		fd, err := resolve(dir.fd(), part)
		if dir != d {
			dir.Close()
		}
		if err != nil {
			return nil, d.fail("open", path, err)
		}
		if dir = newDir(fd, part, d.owner); rest == "" {
			return dir, nil
		}
		path = rest
	}
}
