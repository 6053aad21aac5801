package storage

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"weir/migrations"
	"weir/models/faults"
	"weir/models/store"
	"weir/storage/rules"
)

func init() { faults.FromEnvironment() }

// The child process of TestTakeoverKilled: it is killed when it has recorded progress.
func TestTakeoverChild(t *testing.T) {
	root, database := os.Getenv("WEIR_TEST_ROOT"), os.Getenv("WEIR_TEST_DATABASE")
	if root == "" {
		return // this is the parent
	}
	s, err1 := store.Open(t.Context(), "", database)
	verdicts, err2 := NewVerdicts(s)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	dirs, err := New(root, before, before, verdicts)
	if err == nil {
		err = dirs.UseIDs(t.Context(), testIDs)
	}
	if err == nil {
		err = dirs.Owners(slog.New(slog.DiscardHandler)).Pass(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// A takeover whose process is killed again and again ends, with every file as it should
// be.
func TestTakeoverKilled(t *testing.T) {
	database := filepath.Join(t.TempDir(), "weir.db")
	s, err := store.Open(t.Context(), "", database)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	db, err := s.SQL()
	if err == nil {
		err = migrations.Up(t.Context(), db, "sqlite")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, s)
	top := w.oldFiles(t)
	manyFiles(t, top)
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	killed := 0
	for {
		child := exec.Command(program, "-test.run", "^TestTakeoverChild$")
		child.Env = append(os.Environ(), "WEIR_TEST_ROOT="+w.dirs.Root(), "WEIR_TEST_DATABASE="+database, "WEIR_FAILPOINT=owners.saved")
		out, err := child.CombinedOutput()
		if err == nil {
			break
		}
		if child.ProcessState.String() != "signal: killed" || killed > 10 {
			t.Fatalf("%v: %s", err, out)
		}
		killed++
	}
	if killed < 2 {
		t.Errorf("killed %d times only", killed)
	}
	if list, err := s.Read(t.Context()).FileTakeovers(); err != nil || len(list) != 0 {
		t.Errorf("left: %+v, %v", list, err)
	}
	w.checkOwners(t, top)
}

// checkOwners checks that each file of the project is what the rules want.
func (w *world) checkOwners(t *testing.T, top string) {
	t.Helper()
	owners, files := rules.Owners{Range: testIDs, UID: before}, 0
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		// Hard links wait for a pass that sees all their names.
		if err != nil || d.Name() == "hard" || d.Name() == "two" || d.Name() == "names" {
			return err
		}
		kind := rules.File
		if d.IsDir() {
			kind = rules.Directory
		}
		files++
		is := attributesOf(t, path)
		want, err := owners.Attributes(w.project, path[len(w.dirs.Root()):], kind, is)
		if is != want || want.UID == 0 {
			t.Errorf("%s: %+v, want %+v", path, is, want)
		}
		return err
	})
	if err != nil || files < 3*savedEvery {
		t.Errorf("%d files, %v", files, err)
	}
}
