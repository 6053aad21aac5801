package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/archive"
	"weir/cmd/weir/cli"
	"weir/migrations"
	"weir/models/store"
)

func TestRestoreRefuses(t *testing.T) {
	dir, db := installation(t)
	file := backupOf(t, dir)
	refuse := func(t *testing.T, says string, args ...string) {
		t.Helper()
		code, _, got := admin(append([]string{"restore"}, args...)...)
		if code != cli.ExitError || !strings.Contains(got, says) || !strings.Contains(got, "nothing was restored") {
			t.Errorf("%v: %d %q, not %q", args, code, got, says)
		}
	}
	t.Run("a data directory with something", func(t *testing.T) {
		to := t.TempDir()
		if err := os.WriteFile(filepath.Join(to, "weir.db"), []byte("mine"), 0o600); err != nil {
			t.Fatal(err)
		}
		refuse(t, "is not empty: it has weir.db", file, "--data-dir", to)
		wantFiles(t, to, "weir.db")
	})
	t.Run("the original", func(t *testing.T) { refuse(t, "is not empty", file, "--data-dir", dir) })
	t.Run("one that a server uses", func(t *testing.T) {
		to := t.TempDir()
		lock, err := lockDataDir(to)
		if err != nil {
			t.Fatal(err)
		}
		defer lock.Close()
		refuse(t, "another server uses", file, "--data-dir", to)
	})
	t.Run("a later schema", func(t *testing.T) {
		later := repacked(t, db, func(m *archive.Manifest) { m.Schema = migrations.Newest() + 1 })
		to := filepath.Join(t.TempDir(), "to")
		says := fmt.Sprintf("version %d of the database schema, this program knows up to %d: use Weir 9", migrations.Newest()+1, migrations.Newest())
		refuse(t, says, later, "--data-dir", to)
		absent(t, to)
	})
	t.Run("another schema than it says", func(t *testing.T) {
		wrong := repacked(t, db, func(m *archive.Manifest) { m.Schema = 5 })
		to := filepath.Join(t.TempDir(), "to")
		refuse(t, "the manifest says 5", wrong, "--data-dir", to)
		absent(t, to)
	})
	t.Run("another installation than it says", func(t *testing.T) {
		to := filepath.Join(t.TempDir(), "to")
		refuse(t, "not of the installation", repacked(t, db, func(m *archive.Manifest) { m.Generation = 7 }), "--data-dir", to)
		absent(t, to)
	})
	t.Run("half an archive", func(t *testing.T) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		half := filepath.Join(t.TempDir(), "half")
		if err := os.WriteFile(half, b[:len(b)/2], 0o600); err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(t.TempDir(), "to")
		refuse(t, "damaged", half, "--data-dir", to)
		absent(t, to)
	})
	t.Run("an audit log that was changed", func(t *testing.T) {
		raw, err := db.SQL()
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{"DROP TRIGGER audit_entries_update", "UPDATE audit_entries SET actor = 'b' WHERE id = 2"} {
			if _, err := raw.Exec(statement); err != nil {
				t.Fatal(err)
			}
		}
		to := filepath.Join(t.TempDir(), "to")
		refuse(t, "broken at entry 2", backupOf(t, dir), "--data-dir", to)
		absent(t, to)
	})
}

// repacked is a backup of a database with another manifest.
func repacked(t *testing.T, db *store.Store, change func(*archive.Manifest)) (file string) {
	t.Helper()
	dir := t.TempDir()
	if err := db.BackUp(t.Context(), filepath.Join(dir, "weir.db")); err != nil {
		t.Fatal(err)
	}
	in, err := db.Read(t.Context()).Installation()
	if err != nil {
		t.Fatal(err)
	}
	m := archive.Manifest{Version: "9", Schema: migrations.Newest(), Installation: in.UID, Generation: in.Generation, CreatedAt: db.Now()}
	change(&m)
	file = filepath.Join(dir, "changed.tar.gz")
	if _, err := archive.Write(t.Context(), file, m, []archive.Source{{Name: "weir.db", File: filepath.Join(dir, "weir.db")}}, ""); err != nil {
		t.Fatal(err)
	}
	return file
}

func absent(t *testing.T, path string) {
	t.Helper()
	if _, err := os.Lstat(path); err == nil {
		entries, _ := os.ReadDir(path)
		t.Errorf("%s was left, with %v", path, entries)
	}
}

// A restore that was killed is not in the way of the next.
func TestRestoreAfterAKilledOne(t *testing.T) {
	dir, _ := installation(t)
	to := t.TempDir()
	if err := os.MkdirAll(filepath.Join(to, restoring+"123", "shared"), 0o700); err != nil {
		t.Fatal(err)
	}
	succeed(t, "restore", backupOf(t, dir), "--data-dir", to)
	wantFiles(t, to, "authority.pem", "lock", "settings", "weir.db")
}
