package storage

import (
	"os"
	"path/filepath"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// A project whose files were there and are not any more is not served with an empty
// directory.
func TestMissingFilesAreNotReplaced(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		dir := filepath.Join(w.dirs.Root(), rules.ProjectDir(w.project))
		user := models.DirectoryUser{ProjectID: w.project, MemberID: w.member}
		mount := func() error {
			_, _, err := w.dirs.EnsureMounts(t.Context(), user)
			return err
		}
		if err := mount(); err != nil {
			t.Fatal(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := mount(); err != nil {
			t.Fatalf("a project that was never measured: %v", err)
		}
		if err := os.WriteFile(filepath.Join(dir, "project_model/weights"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
		storetest.InTx(t, s, func(q *store.Queries) error { return q.FinishScan(w.project) })
		if err := os.Rename(dir, dir+".moved"); err != nil {
			t.Fatal(err)
		}
		for what, err := range map[string]error{"mounts": mount(), "project": w.dirs.MakeProject(t.Context(), w.project),
			"member": w.dirs.MakeMember(t.Context(), w.project, w.member)} {
			if models.KindOf(err) != models.KindUnavailable {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := os.Lstat(dir); !os.IsNotExist(err) {
			t.Errorf("there is an empty directory instead: %v", err)
		}
		if err := os.Rename(dir+".moved", dir); err != nil {
			t.Fatal(err)
		}
		if err := mount(); err != nil {
			t.Error(err)
		}
		if _, err := os.Lstat(filepath.Join(dir, "project_model/weights")); err != nil {
			t.Error(err)
		}
	})
}
