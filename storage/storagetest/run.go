package storagetest

import (
	"path"
	"testing"

	"weir/models"
)

// Op is an operation on a file or directory.
type Op string

const (
	List Op = "list" // a directory: its file named file is seen
	Read Op = "read" // a file
	// Download is of a file, to where no rules hold. In a mount, reading is downloading.
	Download Op = "download"
	Write    Op = "write"  // a file that exists
	Create   Op = "create" // a file that does not exist
	Mkdir    Op = "mkdir"  // a directory that does not exist
	Remove   Op = "remove" // what was created
)

// Medium is a way to the shared files.
type Medium struct {
	// Try carries an operation out for a member, by the path in workspaces, and reports
	// whether it had its effect. A refusal is not an error.
	Try func(t *testing.T, who string, op Op, path string) bool
	// Start, if set, is called when the rules of a set apply, before anything is tried.
	Start  func(t *testing.T)
	Mounts bool // the medium has the limitations of mounts
	Pods   bool // and those of mounts in pods
}

// Run tries all cases. Each line is tried with every operation that its path allows.
func Run(t *testing.T, w *World, m Medium) {
	for _, s := range Sets {
		t.Run(s.Name, func(t *testing.T) {
			w.apply(t, s)
			if m.Start != nil {
				m.Start(t)
			}
			limited := map[Line]bool{}
			for _, l := range s.Lines {
				limited[l] = w.limited(t, l.Who, l.Path)
			}
			if err := w.makeDir(later); err != nil {
				t.Fatal(err)
			}
			for _, l := range s.Lines {
				mounted, differs := l.mounted(m.Pods)
				if limited[l] != differs {
					t.Errorf("%s %s: listed as a limitation of mounts: %t", l.Who, l.Path, limited[l])
				}
				if !m.Mounts {
					mounted = l.Access
				}
				w.try(t, m, l, mounted)
			}
		})
	}
}

func (w *World) try(t *testing.T, m Medium, l Line, want models.FileAccess) {
	at := w.Expand(l.Path)
	check := func(op Op, path string, want bool) {
		if got := m.Try(t, l.Who, op, path); got != want {
			t.Errorf("%s %s %s: %t, want %t", l.Who, op, l.Path, got, want)
		}
	}
	mayRead, mayWrite := want.Includes(models.AccessRead), want.Includes(models.AccessWrite)
	mayDownload := mayRead && (m.Mounts || !l.Kept)
	if path.Base(at) == "file" {
		check(Read, at, mayRead)
		check(Download, at, mayDownload)
		check(Write, at, mayWrite)
		return
	}
	check(List, at, mayRead)
	check(Read, at+"/file", mayRead)
	check(Download, at+"/file", mayDownload)
	check(Write, at+"/file", mayWrite)
	for _, op := range []Op{Create, Mkdir} {
		name := at + "/made by " + l.Who + " with " + string(op)
		check(op, name, mayWrite)
		if mayWrite {
			check(Remove, name, true)
		}
	}
}
