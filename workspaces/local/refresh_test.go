package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/models"
	"weir/workspaces/runtime"
)

// refreshBench is a workspace with a shell that runs what is written to its socket
// directory, in the directory where it has stayed.
type refreshBench struct {
	*Runtime
	state runtime.State
	share string // with the directories a/b, c and empty, each with a file
	asked int
}

const model = "/notebook/1/project_model"

// shell runs scripts one after another and writes what they print.
const shell = `cd ` + model + `/a; n=1; while :; do
	if [ -e /run/weir/$n.sh ]; then . /run/weir/$n.sh >/run/weir/$n.new 2>&1; mv /run/weir/$n.new /run/weir/$n.out; n=$((n+1)); else sleep 0.01; fi
done`

func newRefreshBench(t *testing.T) *refreshBench {
	t.Helper()
	if !canStage() {
		t.Skip("needs root")
	}
	b := &refreshBench{Runtime: open(t, config(t.TempDir())), share: share(t)}
	for _, dir := range []string{"a/b", "c", "empty"} {
		path := filepath.Join(b.share, dir)
		if err := os.MkdirAll(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "file"), []byte("of "+dir), 0o666); err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{path, filepath.Dir(path), filepath.Join(path, "file")} {
			if err := os.Chown(p, testUser, testUser); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec := scriptSpec(1, shell)
	spec.Command[0] = "bash"
	spec.Mounts = b.mounts()
	b.state = start(t, b.Runtime, spec)
	if out := b.run(t, "pwd"); out != model+"/a\n" {
		t.Fatal(out)
	}
	return b
}

// mounts are the share, and directories in it: NAME with access ro, rw or none.
func (b *refreshBench) mounts(dirs ...string) []models.Mount {
	list := []models.Mount{{Source: b.share, Target: model}}
	for _, d := range dirs {
		name, access, _ := strings.Cut(d, ":")
		m := models.Mount{Source: filepath.Join(b.share, name), Target: filepath.Join(model, name), ReadOnly: access != "rw"}
		if access == "none" {
			m.Source = filepath.Join(b.share, "empty")
		}
		if name == "" {
			list = list[1:]
		}
		list = append(list, m)
	}
	return list
}

// run runs a script in the shell and returns what it printed.
func (b *refreshBench) run(t *testing.T, script string) string {
	t.Helper()
	in, err := b.parseState(b.state)
	if err != nil {
		t.Fatal(err)
	}
	b.asked++
	path := filepath.Join(in.shared(), fmt.Sprint(b.asked))
	if err := errors.Join(os.WriteFile(path+".part", []byte(script), 0o644), os.Rename(path+".part", path+".sh")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the output", func() bool { return exists(path + ".out") })
	out, err := os.ReadFile(path + ".out")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// refresh mounts other directories and checks what a new program can do.
func (b *refreshBench) refresh(t *testing.T, mounts []models.Mount, want map[string]string) {
	t.Helper()
	if err := b.Refresh(t.Context(), b.state, mounts); err != nil {
		t.Fatal(err)
	}
	for dir, access := range want {
		const try = `grep -q 'of %[2]s' %[1]s/%[2]s/file 2>/dev/null && (echo x >> %[1]s/%[2]s/file) 2>/dev/null && echo rw || { grep -q 'of %[2]s' %[1]s/%[2]s/file 2>/dev/null && echo ro || echo none; }`
		if got := strings.TrimSpace(b.run(t, fmt.Sprintf(try, model, dir))); got != access {
			t.Errorf("%v: %s is %s, want %s", mounts, dir, got, access)
		}
	}
}

// A running workspace gets other mounts, which are those of a start.
func TestRefresh(t *testing.T) {
	b := newRefreshBench(t)
	b.refresh(t, b.mounts(), map[string]string{"a/b": "rw", "c": "rw"})
	b.refresh(t, b.mounts("c:ro"), map[string]string{"a/b": "rw", "c": "ro"})
	b.refresh(t, b.mounts("a:rw", "a/b:none", "c:rw"), map[string]string{"a/b": "none", "c": "rw"})
	b.refresh(t, b.mounts("a:ro", "a/b:rw"), map[string]string{"a/b": "rw", "a": "none", "c": "rw"}) // a has no file
	if out := b.run(t, "touch "+model+"/a/new"); !strings.Contains(out, "Read-only") {
		t.Errorf("a is writable: %s", out)
	}
	b.refresh(t, b.mounts("a:ro", "a/b:none"), map[string]string{"a/b": "none"})
	b.refresh(t, b.mounts("a/b:none"), map[string]string{"a/b": "none", "c": "rw"})
	b.refresh(t, b.mounts(":ro", "a:none"), map[string]string{"a/b": "none", "c": "ro"})
	only := []models.Mount{{Source: filepath.Join(b.share, "a/b"), Target: model + "/a/b", ReadOnly: true}}
	b.refresh(t, only, map[string]string{"a/b": "ro", "c": "none"})
	b.refresh(t, append(only, models.Mount{Source: filepath.Join(b.share, "c"), Target: model + "/c"}), map[string]string{"a/b": "ro", "c": "rw"})
	b.refresh(t, b.mounts(), map[string]string{"a/b": "rw", "c": "rw"})
	if out := b.run(t, "grep "+model+" /proc/self/mountinfo | grep -v nosuid,nodev"); out != "" {
		t.Errorf("with set-user-ID programs or devices: %s", out)
	}
	if out := b.run(t, "unshare -Urm umount "+model+"; cat "+model+"/c/file"); !strings.Contains(out, "of c") {
		t.Errorf("a workspace removes a mount: %s", out)
	}
}

// A program that works in a directory loses the right to write there, and gets it back.
func TestRefreshReachesWorkingPrograms(t *testing.T) {
	b := newRefreshBench(t)
	readOnly := b.mounts(":ro")
	b.refresh(t, readOnly, map[string]string{"a/b": "ro"})
	if out := b.run(t, "echo x >> b/file"); !strings.Contains(out, "Read-only") {
		t.Errorf("by a relative path: %q", out)
	}
	b.refresh(t, b.mounts(), nil)
	if out := b.run(t, "echo x >> b/file"); out != "" {
		t.Errorf("after the right came back: %q", out)
	}
	// The same where the directory above gets the access, and has no mount of its own.
	b.refresh(t, b.mounts(":ro", "c:rw"), map[string]string{"c": "rw"})
	b.run(t, "cd "+model+"/c")
	for _, want := range []bool{false, true, false} {
		mounts := b.mounts(":ro")
		if want {
			mounts = b.mounts(":ro", "c:rw")
		}
		b.refresh(t, mounts, nil)
		if out := b.run(t, "echo x >> file"); strings.Contains(out, "Read-only") == want {
			t.Errorf("writable %t: %q", want, out)
		}
	}
	b.refresh(t, b.mounts(":ro", "c:rw"), nil)
	b.run(t, "cd "+model+"/c")
	b.refresh(t, b.mounts(":ro", "c:none"), map[string]string{"c": "none"})
	if out := b.run(t, "echo x >> file"); !strings.Contains(out, "Read-only") {
		t.Errorf("in a hidden directory: %q", out)
	}
}

// What is open for writing when a right ends stays so.
func TestRefreshWithAnOpenFile(t *testing.T) {
	b := newRefreshBench(t)
	b.run(t, "exec 9>>b/file")
	b.refresh(t, b.mounts(":ro"), map[string]string{"a/b": "ro"})
	if out := b.run(t, "echo kept >&9; exec 9>&-; cd "+model+"/a; echo x >> b/file"); !strings.Contains(out, "Read-only") || strings.Contains(out, "9:") {
		t.Errorf("with an open file: %q", out)
	}
}

// A refresh that a crash has interrupted is repeated, also when the rules are the old ones
// again.
func TestRefreshAfterACrash(t *testing.T) {
	b := newRefreshBench(t)
	in, err := b.parseState(b.state)
	if err != nil {
		t.Fatal(err)
	}
	before := b.mounts("c:ro")
	b.refresh(t, before, map[string]string{"c": "ro"})
	// Half of a change to a:none was made: c is not mounted any more.
	old, err := in.mounted()
	if err != nil {
		t.Fatal(err)
	}
	b.refresh(t, b.mounts(), map[string]string{"c": "rw"})
	if err := in.saveMounted(old.during(b.mounts("a:none"))); err != nil {
		t.Fatal(err)
	}
	b.refresh(t, before, map[string]string{"a/b": "rw", "c": "ro"})
	if m, err := in.mounted(); err != nil || m.Changing {
		t.Errorf("%+v, %v", m, err)
	}
}

// What cannot be changed is refused, with everything as it was.
func TestRefusedRefreshes(t *testing.T) {
	b := newRefreshBench(t)
	outside := []models.Mount{{Source: b.share, Target: "/notebook/2"}}
	if err := b.Refresh(t.Context(), b.state, outside); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("the root has no such directory: %v", err)
	}
	b.run(t, "cd; mv "+model+"/c "+model+"/d; ln -s /usr "+model+"/c")
	if err := b.Refresh(t.Context(), b.state, b.mounts("c:ro")); err == nil || !strings.Contains(err.Error(), "symbolic links") {
		t.Errorf("through a link: %v", err)
	}
	b.run(t, "rm "+model+"/c; mv "+model+"/d "+model+"/c")
	b.refresh(t, b.mounts("c:ro"), map[string]string{"a/b": "rw", "c": "ro"})
	in, err := b.parseState(b.state)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(in.mountsFile()); err != nil {
		t.Fatal(err)
	}
	if err := b.Refresh(t.Context(), b.state, b.mounts()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a workspace of an earlier version: %v", err)
	}
}

// What is hidden in a directory stays so while other mounts get to their places, also for who works in the old one.
func TestRefreshShowsNothingHidden(t *testing.T) {
	b := newRefreshBench(t)
	twin := share(t)
	if err := os.CopyFS(twin, os.DirFS(b.share)); err != nil {
		t.Fatal(err)
	}
	hidden := b.mounts("a/b:none")
	b.refresh(t, hidden, map[string]string{"a/b": "none"})
	const watch = `(while [ ! -e /run/weir/stop ]; do for f in b/file %s/a/b/file; do read -r x <$f; [ "$x" != "of a/b" ] || echo $x; done; done >/run/weir/seen 2>/dev/null) &`
	b.run(t, fmt.Sprintf(watch, model))
	other := slices.Clone(hidden)
	other[0].Source = twin
	for i := range 200 {
		mounts := hidden
		if i%2 == 0 {
			mounts = other
		}
		if err := b.Refresh(t.Context(), b.state, mounts); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Refresh(t.Context(), b.state, nil); err != nil { // all access is withdrawn
		t.Fatal(err)
	}
	if out := b.run(t, "touch /run/weir/stop; wait; cat /run/weir/seen b/file "+model+"/a/b/file"); strings.Contains(out, "of a/b") {
		t.Errorf("seen: %.200s", out)
	}
}

// A directory that is shown again has the access of the one above, whatever was mounted there before.
func TestRefreshShowsAgain(t *testing.T) {
	b := newRefreshBench(t)
	b.refresh(t, b.mounts(":ro", "c:rw"), map[string]string{"c": "rw"})
	b.run(t, "exec 9>>"+model+"/c/file") // its mount cannot become read-only
	b.refresh(t, b.mounts(":ro", "c:none"), map[string]string{"c": "none"})
	b.refresh(t, b.mounts(":ro"), map[string]string{"c": "ro"})
	b.refresh(t, b.mounts(), map[string]string{"c": "rw"})
}
