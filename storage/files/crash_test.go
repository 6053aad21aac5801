package files

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/migrations"
	"weir/models"
	"weir/models/faults"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func init() { faults.FromEnvironment() }

// crashes are the operations and the steps at which the process is killed.
var crashes = map[string][]string{
	"write":   {"files.begun", "files.received", "files.ready", "files.placed"},
	"replace": {"files.begun", "files.received", "files.ready", "files.exchanged", "files.placed"},
	"copy":    {"files.begun", "files.ready", "files.placed"},
	"move":    {"files.begun", "files.ready", "files.placed"},
	"delete":  {"files.begun", "files.ready", "files.placed"},
	"restore": {"files.begun", "files.ready", "files.placed"},
	"extract": {"files.begun", "files.ready", "files.placed"},
	"upload":  {"files.begun", "files.received", "files.ready", "files.placed"},
}

// crashed is what a child process does until it is killed.
func (w *world) crashed(t *testing.T, operation string) (err error) {
	ctx := t.Context()
	switch operation {
	case "extract":
		_, err = w.Extract(ctx, w.acting, w.project, w.at("out"), Zip, bytes.NewReader(zipOf(t, &zip.FileHeader{Name: "a"})))
	case "write":
		_, err = w.Write(ctx, w.acting, w.project, w.at("new"), strings.NewReader("new"), 3, Condition{})
	case "upload":
		var u *Upload
		if u, err = w.BeginUpload(ctx, w.acting, w.project, w.at("new"), 3); err == nil {
			_, err = u.Append(ctx, 0, strings.NewReader("new"))
		}
		if err == nil {
			_, err = u.Finish(ctx)
		}
	case "replace":
		_, err = w.Write(ctx, w.acting, w.project, w.at("file"), strings.NewReader("new"), 3, Condition{})
	case "copy":
		_, err = w.Copy(ctx, w.acting, w.project, w.at("dir"), w.at("copy"))
	case "move":
		_, err = w.Move(ctx, w.acting, w.project, w.at("dir"), w.at("moved"))
	case "delete":
		_, err = w.Delete(ctx, w.acting, w.project, w.at("dir"), Condition{})
	case "restore":
		var list []Trashed
		if list, err = w.Trash(ctx, w.acting, w.project, store.Page{}); err == nil {
			_, err = w.Restore(ctx, w.acting, w.project, list[0].ID, "")
		}
	case "purge":
		var list []Trashed
		if list, err = w.Trash(ctx, w.acting, w.project, store.Page{}); err == nil {
			err = w.Purge(ctx, w.acting, w.project, list[0].ID)
		}
	case "purge-version":
		var list []Version
		if list, err = w.Versions(ctx, w.acting, w.project, w.at("file"), store.Page{}); err == nil {
			_, err = w.PurgeVersion(ctx, w.acting, w.project, list[0].ID)
		}
	}
	return err
}

// The child process of TestKilled: it is killed at a failpoint.
func TestChild(t *testing.T) {
	root, operation := os.Getenv("WEIR_TEST_ROOT"), os.Getenv("WEIR_TEST_OPERATION")
	if operation == "" {
		return // this is the parent
	}
	s, err := store.Open(t.Context(), "", filepath.Join(root, "..", "weir.db"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{store: s, clock: storetest.NewClock(s)}
	w.open(t, root)
	w.adopt(t)
	t.Fatalf("not killed: %v", w.crashed(t, operation))
}

// adopt finds the project and the member that newWorld made.
func (w *world) adopt(t *testing.T) {
	t.Helper()
	q := w.store.Read(t.Context())
	p, err1 := q.ProjectByName(store.AllProjects, "vision")
	u, err2 := q.UserByEmail("member@example.org")
	memberships, err3 := q.MembershipsOf(u.ID, w.store.Now())
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	w.project, w.acting = p.ID, policies.Actor{User: u, Grants: policies.GrantsOf(memberships)}
}

// After a kill at any step there is the old content or the new, the sweep leaves
// nothing behind, and the use is what the files have.
func TestKilled(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for operation, steps := range crashes {
		for _, step := range steps {
			t.Run(operation+" "+step, func(t *testing.T) { killedAt(t, program, operation, step) })
		}
	}
	for _, step := range []string{"files.exchanged", "files.placed"} {
		t.Run("overwritten again after "+step, func(t *testing.T) { killedBeforeAnother(t, program, step) })
	}
	for _, step := range []string{"files.purged", "files.renamed"} {
		t.Run("purge "+step, func(t *testing.T) { killedWhilePurging(t, program, "purge", step, 5) })
		t.Run("purge version "+step, func(t *testing.T) { killedWhilePurging(t, program, "purge-version", step, 12) })
	}
}

// killedWhilePurging: what is half removed is not listed, does not count, and goes. used is what the rest has.
func killedWhilePurging(t *testing.T, program, operation, step string, used int64) {
	w := killed(t, program, operation, step)
	if versions, err := w.Versions(t.Context(), w.acting, w.project, w.at("file"), store.Page{}); err != nil || len(versions) != 0 {
		t.Errorf("versions: %+v, %v", versions, err)
	}
	if trash, err := w.Trash(t.Context(), w.acting, w.project, store.Page{}); err != nil || len(trash) != 0 {
		t.Errorf("in the trash: %+v, %v", trash, err)
	}
	w.clock.Advance(operationLease + time.Minute)
	if err := w.Sweep(t.Context()); err != nil || w.state(t) != stateAfter(operation, true) {
		t.Errorf("%v, %s", err, w.state(t))
	}
	w.settled(t, used)
	if audited := strings.Count(w.actions(t), operation); audited != 1 {
		t.Errorf("audited: %s", w.actions(t))
	}
}

// killed is a world in which a process was killed in an operation. It has a file of 5
// bytes and one of 7 in a directory, which is in the trash before it is restored or
// purged.
func killed(t *testing.T, program, operation, step string) *world {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), "", filepath.Join(dir, "weir.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	db, err := s.SQL()
	if err == nil {
		err = migrations.Up(t.Context(), db, "sqlite")
	}
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, s, root)
	w.write(t, w.at("file"), "older")
	if _, err := w.MakeDirectory(t.Context(), w.acting, w.project, w.at("dir")); err != nil {
		t.Fatal(err)
	}
	w.write(t, w.at("dir/a"), "content")
	if operation == "purge-version" {
		w.write(t, w.at("file"), "older")
	}
	if operation == "restore" || operation == "purge" {
		if _, err := w.Delete(t.Context(), w.acting, w.project, w.at("dir"), Condition{}); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(program, "-test.run=^TestChild$")
	cmd.Env = append(os.Environ(), "WEIR_TEST_ROOT="+root, "WEIR_TEST_OPERATION="+operation, "WEIR_FAILPOINT="+step)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("not killed: %v, %s", err, out)
	}
	return w
}

// killedBeforeAnother: what was overwritten is a version, also if somebody overwrites it again before the sweep.
func killedBeforeAnother(t *testing.T, program, step string) {
	w := killed(t, program, "replace", step)
	above := filepath.Dir(w.disk(w.at("file")))
	err := os.WriteFile(filepath.Join(above, "another"), []byte("another"), 0o644)
	if err = errors.Join(err, os.Rename(filepath.Join(above, "another"), filepath.Join(above, "file"))); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(operationLease + time.Minute)
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	versions, err := w.Versions(t.Context(), w.acting, w.project, w.at("file"), store.Page{})
	if err != nil || len(versions) != 1 {
		t.Fatalf("%+v, %v; want the overwritten content", versions, err)
	}
	content, err := w.OpenVersion(t.Context(), w.acting, w.project, versions[0].ID, true)
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if b, err := io.ReadAll(content.File); err != nil || string(b) != "older" || w.read(t, w.at("file")) != "another" {
		t.Errorf("the version is %q, %v; the file %q", b, err, w.read(t, w.at("file")))
	}
}

func killedAt(t *testing.T, program, operation, step string) {
	w := killed(t, program, operation, step)
	done := step == "files.placed" || step == "files.exchanged"
	before := w.state(t)
	if want := stateAfter(operation, done); before != want {
		t.Errorf("%s; want %s", before, want)
	}
	if operation == "upload" && step != "files.begun" && !done {
		w.resumes(t)
		done = true
		before = stateAfter(operation, done)
	}
	w.clock.Advance(uploadLease + time.Hour)
	if err := w.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	used := map[string]int64{"write": 3, "replace": 3, "copy": 7, "extract": 7, "upload": 3}[operation]
	if !done {
		used = 0
	}
	w.settled(t, 12+used)
	if after := w.state(t); after != before {
		t.Errorf("the sweep changed %s to %s", before, after)
	}
	if versions, err := w.Versions(t.Context(), w.acting, w.project, w.at("file"), store.Page{}); err != nil || len(versions) == 1 != (done && operation == "replace") {
		t.Errorf("%+v, %v", versions, err)
	}
	trash, err := w.Trash(t.Context(), w.acting, w.project, store.Page{})
	if inTrash := operation == "delete" && done || operation == "restore" && !done; err != nil || len(trash) == 1 != inTrash {
		t.Errorf("in the trash: %+v, %v", trash, err)
	}
	audited := len(strings.Fields(w.actions(t)))
	if operation == "restore" {
		audited--
	}
	if want := map[bool]int{false: 3, true: 4}[done]; audited != want {
		t.Errorf("audited: %s", w.actions(t))
	}
}

// resumes continues the upload that a kill has interrupted: what has arrived is there.
func (w *world) resumes(t *testing.T) {
	t.Helper()
	list, err := w.store.Read(t.Context()).ExpiredFileOperations(w.store.Now().AddDate(1, 0, 0))
	if err != nil || len(list) != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
	u, err := w.Upload(t.Context(), w.acting, w.project, list[0].ID)
	if err != nil || u.Offset != 3 {
		t.Fatalf("%+v, %v", u, err)
	}
	if _, err := u.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// state is what a reader finds.
func (w *world) state(t *testing.T) string {
	t.Helper()
	var list []string
	for _, name := range []string{"file", "new", "dir/a", "copy/a", "moved/a", "out/a"} {
		if content := w.read(t, w.at(name)); content != string(models.KindNotFound) {
			list = append(list, name+"="+content)
		}
	}
	return strings.Join(list, " ")
}

func stateAfter(operation string, done bool) string {
	const file, dir = "file=older", " dir/a=content"
	switch {
	case (operation == "write" || operation == "upload") && done:
		return file + " new=new" + dir
	case operation == "replace" && done:
		return "file=new" + dir
	case operation == "copy" && done:
		return file + dir + " copy/a=content"
	case operation == "extract" && done:
		return file + dir + " out/a=content"
	case operation == "move" && done:
		return file + " moved/a=content"
	case (operation == "delete" || operation == "purge") && done, operation == "restore" && !done:
		return file
	default:
		return file + dir
	}
}

// A full disk refuses with no_capacity, keeps the old content and leaves nothing behind.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small file system")
	}
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=4m"); err != nil {
		t.Skip("cannot mount: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(root, unix.MNT_DETACH) })
	w := newWorld(t, storetest.Open(t, "sqlite"), root)
	w.write(t, w.at("a"), "old")
	for _, size := range []int64{-1, 8 << 20} {
		_, err := w.Write(t.Context(), w.acting, w.project, w.at("a"), limited(8<<20), size, Condition{})
		wants(t, "write", models.KindNoCapacity, err)
	}
	if _, err := w.Write(t.Context(), w.acting, w.project, w.at("half"), limited(3<<20), -1, Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err := w.Copy(t.Context(), w.acting, w.project, w.at("half"), w.at("copy"))
	wants(t, "copy", models.KindNoCapacity, err)
	if w.read(t, w.at("a")) != "old" || w.names(t, w.at("")) != "a half" {
		t.Errorf("%q, %s", w.read(t, w.at("a")), w.names(t, w.at("")))
	}
	upload := w.cutByFullDisk(t, w.at("upload"), 2<<20)
	trashed, err := w.Delete(t.Context(), w.acting, w.project, w.at("half"), Condition{})
	if err = errors.Join(err, w.Purge(t.Context(), w.acting, w.project, trashed.ID)); err != nil {
		t.Fatal(err)
	}
	u, err := w.Upload(t.Context(), w.acting, w.project, upload)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.Append(t.Context(), u.Offset, limited(u.Length-u.Offset)); err != nil {
		t.Fatal(err)
	}
	if e, err := u.Finish(t.Context()); err != nil || e.Size != 2<<20 || w.names(t, w.at("")) != "a upload" {
		t.Errorf("%+v, %v, %s", e, err, w.names(t, w.at("")))
	}
	w.settled(t, 2<<20+3)
}

// cutByFullDisk is an upload that the disk has no space for. What has arrived is kept, and
// not at the file's path.
func (w *world) cutByFullDisk(t *testing.T, path models.FilePath, size int64) int64 {
	t.Helper()
	u, err := w.BeginUpload(t.Context(), w.acting, w.project, path, size)
	if err != nil {
		t.Fatal(err)
	}
	_, err = u.Append(t.Context(), 0, limited(size))
	wants(t, "append", models.KindNoCapacity, err)
	if u.Offset == 0 || u.Offset >= size || w.read(t, path) != string(models.KindNotFound) {
		t.Errorf("%d bytes have arrived", u.Offset)
	}
	return u.ID()
}
