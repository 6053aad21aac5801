package storagetest_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage"
	"weir/storage/storagetest"
	"weir/workspaces/local"
)

// newNotebooks runs workspaces of members on this machine.
func newNotebooks(t *testing.T, s *store.Store) (*storagetest.Notebooks, *storage.Verdicts) {
	t.Helper()
	dirs, verdicts := directories(t, s)
	r, err := local.New(local.Config{Dir: filepath.Join(t.TempDir(), "run"), SandboxUID: sandboxUser, SandboxGID: sandboxUser, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return &storagetest.Notebooks{World: storagetest.New(t, s, dirs), Runtime: r, Patience: time.Minute}, verdicts
}

// In real notebooks, the mounts express the rules, but for what is listed.
func TestMountsFollowTheRules(t *testing.T) {
	b, _ := newNotebooks(t, storetest.Open(t, "sqlite"))
	storagetest.Run(t, b.World, storagetest.Medium{Try: b.Try, Start: b.StartKernels, Mounts: true})
}

// Notebooks that were started before the rules express them as well as those of later.
func TestRunningNotebooksFollowTheRules(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the mounts of a sandbox")
	}
	b, _ := newNotebooks(t, storetest.Open(t, "sqlite"))
	b.StartKernels(t)
	storagetest.Run(t, b.World, storagetest.Medium{Try: b.Try, Start: b.RefreshKernels, Mounts: true})
}

// What members and the file service create is writable for all members, whatever the
// umask and the program.
func TestMembersWriteEachOthersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give members IDs")
	}
	b, verdicts := newNotebooks(t, storetest.Open(t, "sqlite"))
	const create = `set -e; umask %[1]s; cd %[2]s
		mkdir -p %[1]s-%[3]s/made; cd %[1]s-%[3]s
		echo new > plain; echo new > made/plain
		echo new > /tmp/moved; mv /tmp/moved moved; mkdir /tmp/dir; echo new > /tmp/dir/file; mv /tmp/dir moved-dir
		echo new > /tmp/copied; cp -p /tmp/copied copied; cp -a made made-copy
		git init -q /tmp/repo; cd /tmp/repo; echo new > tracked; git add .; git -c user.name=x -c user.email=x@x commit -qm first; cd - >/dev/null
		git clone -q /tmp/repo cloned`
	// tar sets the mode of what it extracts, less the umask.
	const extract = `set -e; umask %[1]s; cd %[2]s/%[1]s-%[3]s
		mkdir /tmp/t; echo new > /tmp/t/file; chmod 755 /tmp/t; chmod 644 /tmp/t/file; tar -C /tmp -cf /tmp/t.tar t; tar -xf /tmp/t.tar
		echo new > closed; chmod 600 closed`
	// Objects of git are for nobody to write.
	const use = `cd %[2]s/%[1]s-%[3]s && find . -type d | while read d; do echo x > "$d/by-another" && rm "$d/by-another" || echo "directory $d"; done
		find . -type f -not -path '*/objects/*' | while read f; do cat "$f" >/dev/null && echo x >> "$f" || echo "file $f"; done; true`
	dir := b.Expand("/notebook/{p}/project_dataset")
	owners := b.Dirs.Owners(slog.New(slog.DiscardHandler))
	for _, umask := range []string{"077", "022"} {
		for who, other := range map[string]string{"ann": "ben", "ben": "ann"} {
			b.Script(t, who, fmt.Sprintf(create, umask, dir, who))
			if out := b.Script(t, other, fmt.Sprintf(use, umask, dir, who)); out != "" {
				t.Errorf("%s cannot use what %s created with umask %s:\n%s", other, who, umask, out)
			}
			b.Script(t, who, fmt.Sprintf(extract, umask, dir, who))
			if err := owners.Correct(t.Context(), b.Project); err != nil {
				t.Fatal(err)
			}
			if out := b.Script(t, other, fmt.Sprintf(use, umask, dir, who)); out != "" {
				t.Errorf("%s cannot use what %s extracted with umask %s:\n%s", other, who, umask, out)
			}
		}
	}
	s := newService(t, b.World, verdicts)
	made := dir + "/by the service"
	for op, path := range map[storagetest.Op]string{storagetest.Mkdir: made + " too", storagetest.Create: made} {
		if !s.try(t, "ann", op, path) {
			t.Fatal("the service refuses to create")
		}
	}
	b.Script(t, "ben", "set -e; echo x >> '"+made+"'; echo x > '"+made+" too/file'")
	b.Script(t, "ann", "set -e; echo x >> '"+made+" too/file'; rm -r '"+made+" too' '"+made+"'")
}

// Who exceeds a storage limit can write in a notebook that runs until the grace period is
// over; from then on only read, and again write when the files fit.
func TestRunningNotebookOverItsLimit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can change the mounts of a sandbox")
	}
	b, _ := newNotebooks(t, storetest.Open(t, "sqlite"))
	b.StartKernels(t)
	over := models.StorageExcess{ProjectID: b.Project, MemberID: b.Members["ann"].ID}
	storetest.InTx(t, b.Store, func(q *store.Queries) error { // so that use is kept of her
		return q.AddStorageUse(b.Project, models.StorageChange{Bytes: models.StorageShares{over.MemberID: 1}})
	})
	for _, step := range []struct {
		name     string
		readOnly time.Duration // from now
		ended    bool
		writes   bool
	}{
		{"in the grace period", time.Hour, false, true}, {"after it", -time.Second, false, false}, {"when the files fit", 0, true, true},
	} {
		storetest.InTx(t, b.Store, func(q *store.Queries) error {
			at := q.Now().Add(step.readOnly)
			if step.ended {
				return q.SetStorageReadOnly(over, nil)
			}
			return q.SetStorageReadOnly(over, &at)
		})
		b.RefreshKernels(t)
		for _, path := range []string{"/home/jovyan/file", b.Expand("/notebook/{p}/project_model/file")} {
			if !b.Try(t, "ann", storagetest.Read, path) {
				t.Errorf("%s: %s cannot be read", step.name, path)
			}
			if got := b.Try(t, "ann", storagetest.Write, path); got != step.writes {
				t.Errorf("%s: writing %s: %t", step.name, path, got)
			}
			if !b.Try(t, "ben", storagetest.Read, path) {
				t.Errorf("%s: a colleague cannot read %s", step.name, path)
			}
		}
	}
}
