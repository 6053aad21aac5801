package files

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
	"weir/tools/vm"
)

// mounted makes a file system in a file and mounts it.
func mounted(t *testing.T, options string, mkfs ...string) string {
	t.Helper()
	image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, command := range [][]string{{"truncate", "-s", "400M", image}, append(mkfs, image), {"mount", "-o", "loop," + options, image, at}} {
		if output, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, output)
		}
	}
	t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
	if err := os.Chmod(filepath.Dir(at), 0o755); err != nil { // other users get there
		t.Fatal(err)
	}
	return at
}

// notebookWrites writes MiB to a file as an ordinary user, who is held to quotas, and
// returns what that printed.
func (w *world) notebookWrites(t *testing.T, path models.FilePath, mib int) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "dd", "if=/dev/zero", "of="+w.disk(path), "bs=1M", fmt.Sprint("count=", mib), "conv=fsync")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 7000, Gid: 7000}}
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil && !strings.Contains(output.String(), "No space left") && !strings.Contains(output.String(), "quota exceeded") {
		t.Fatalf("%v\n%s", err, output.String())
	}
	return output.String()
}

func full(output string) bool {
	return strings.Contains(output, "No space left") || strings.Contains(output, "quota exceeded")
}

func (w *world) setQuota(t *testing.T, mib int64) {
	t.Helper()
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		p, err := q.LockProject(store.AllProjects, w.project)
		if err != nil {
			return err
		}
		p.Quota.StorageMiB = mib
		return q.UpdateProject(&p)
	})
	if err := w.EnforceQuotas(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// onDisk is how much counts for the project, in MiB, rounded up.
func (w *world) onDisk(t *testing.T) int64 {
	t.Helper()
	dir, err := w.Root.Dir("")
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	used, err := dir.QuotaUsed(w.QuotaID(w.project))
	if err != nil {
		t.Fatal(err)
	}
	return (used + mebibyte - 1) / mebibyte
}

// The kernel keeps notebooks within the quota of their project, wherever the service
// has moved the files to.
func TestFileSystemQuotas(t *testing.T) {
	if !vm.Inside() {
		t.Parallel()
		vm.Run(t, "mkfs.ext4", "mkfs.xfs")
		return
	}
	for name, fs := range map[string]struct {
		options string
		mkfs    []string
	}{
		"ext4": {"prjquota", []string{"mkfs.ext4", "-q", "-O", "project,quota", "-E", "quotatype=prjquota"}},
		"xfs":  {"prjquota", []string{"mkfs.xfs", "-q"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, storetest.Open(t, "sqlite"), mounted(t, fs.options, fs.mkfs...))
			w.QuotaID = func(project int64) uint32 { return uint32(100_000 + project) }
			project := models.FilePath(rules.ProjectDir(w.project))
			if err := errors.Join(os.Chmod(w.disk(project), 0o755), os.Chmod(w.disk(w.at("")), 0o777)); err != nil {
				t.Fatal(err)
			}
			testQuotas(t, w)
		})
	}
}

func testQuotas(t *testing.T, w *world) {
	content := strings.Repeat("x", 4*mebibyte)
	if err := os.Mkdir(w.disk(w.at("dir")), 0o777); err != nil {
		t.Fatal(err)
	}
	w.write(t, w.at("dir/before"), content)
	if w.QuotaEnforced(w.project) {
		t.Fatal("enforced before it was set")
	}
	w.setQuota(t, 20)
	if !w.QuotaEnforced(w.project) {
		t.Fatal("not enforced")
	}
	if got := w.onDisk(t); got != 4 && got != 5 {
		t.Errorf("%d MiB count for the project, want 4", got)
	}
	if output := w.notebookWrites(t, w.at("a"), 8); full(output) {
		t.Errorf("within the quota: %s", output)
	}
	if output := w.notebookWrites(t, w.at("b"), 12); !full(output) {
		t.Errorf("beyond the quota: %s", output)
	}
	if err := os.Remove(w.disk(w.at("b"))); err != nil {
		t.Fatal(err)
	}
	// The trash counts, an emptied one does not.
	item, err := w.Delete(t.Context(), w.acting, w.project, w.at("dir"), Condition{})
	if err != nil {
		t.Fatal(err)
	}
	if output := w.notebookWrites(t, w.at("b"), 9); !full(output) {
		t.Errorf("the trash does not count: %s", output)
	}
	if err := w.Purge(t.Context(), w.acting, w.project, item.ID); err != nil {
		t.Fatal(err)
	}
	if output := w.notebookWrites(t, w.at("b"), 9); full(output) {
		t.Errorf("the emptied trash counts: %s", output)
	}
	// A lower quota stops at once what exceeds it.
	w.setQuota(t, 10)
	if output := w.notebookWrites(t, w.at("c"), 1); !full(output) {
		t.Errorf("a lower quota: %s", output)
	}
	testQuotaOfMoves(t, w)
}

// Files that are moved out of the project count no more, and again once they are back.
func testQuotaOfMoves(t *testing.T, w *world) {
	w.setQuota(t, 40)
	if err := os.Mkdir(w.disk(w.at("moved")), 0o777); err != nil {
		t.Fatal(err)
	}
	w.write(t, w.at("moved/file"), strings.Repeat("x", 4*mebibyte))
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		return q.CreateCurator(&models.Curator{Directory: rules.PublicDirs()[1], UserID: &w.acting.User.ID, CreatedAt: q.Now()})
	})
	public := models.FilePath(rules.PublicDirs()[1] + "/moved")
	before := w.onDisk(t)
	if _, err := w.Move(t.Context(), w.acting, w.project, w.at("moved"), public); err != nil {
		t.Fatal(err)
	}
	if got := w.onDisk(t); got > before-4+1 {
		t.Errorf("%d of %d MiB count after 4 were made public", got, before)
	}
	if _, err := w.Move(t.Context(), w.acting, w.project, public, w.at("back")); err != nil {
		t.Fatal(err)
	}
	if got := w.onDisk(t); got < before-1 {
		t.Errorf("%d of %d MiB count after 4 came back", got, before)
	}
}
