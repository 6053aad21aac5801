package storage

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// testIDs are IDs that nobody has on this machine.
var testIDs = rules.IDRange{First: 1_900_500_000, Last: 1_900_599_999}

// before is the user who owned everything before members had IDs.
const before = 62000

// oldFiles makes the directories of the project with the one owner of before, and files
// in them, with ways out to a canary. It returns the project's directory on the disk.
func (w *world) oldFiles(t *testing.T) (top string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can change owners")
	}
	w.dirs.uid, w.dirs.gid = before, before
	if err := errors.Join(w.dirs.MakeProject(t.Context(), w.project), w.dirs.MakeMember(t.Context(), w.project, w.member)); err != nil {
		t.Fatal(err)
	}
	top = filepath.Join(w.dirs.Root(), rules.ProjectDir(w.project))
	canary := filepath.Join(w.dirs.Root(), "canary")
	err := errors.Join(os.WriteFile(canary, []byte("outside"), 0o600),
		os.Mkdir(canary+".d", 0o700),
		os.Symlink(canary, top+"/project_model/link"), os.Symlink(canary+".d", top+"/project_model/linked"),
		os.Link(canary, top+"/project_model/hard"),
		unix.Mkfifo(top+"/project_model/fifo", 0o600),
		os.WriteFile(top+"/project_model/two", nil, 0o644), os.Link(top+"/project_model/two", top+"/project_dataset/names"),
		os.MkdirAll(top+"/project_model/"+strings.Repeat("deep/", 200), 0o755),
		os.WriteFile(top+"/project_model/script", nil, 0o755),
		os.WriteFile(filepath.Join(w.own(), "key"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Base(path) == "hard" {
			return err
		}
		return errors.Join(err, os.Lchown(path, before, before))
	})
	if err != nil {
		t.Fatal(err)
	}
	return top
}

// own is the member's directory on the disk.
func (w *world) own() string {
	return filepath.Join(w.dirs.Root(), rules.MemberDir(w.project, w.member))
}

func attributesOf(t *testing.T, path string) rules.Attributes {
	t.Helper()
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		t.Fatal(err)
	}
	return rules.Attributes{UID: int64(st.Uid), GID: int64(st.Gid), Mode: st.Mode & 0o7777}
}

// owners gives the project IDs.
func (w *world) owners(t *testing.T) *Owners {
	t.Helper()
	if err := w.dirs.UseIDs(t.Context(), testIDs); err != nil {
		t.Fatal(err)
	}
	return w.dirs.Owners(slog.New(slog.DiscardHandler))
}

// Existing files get the IDs of their members and the project, also through a hostile
// tree, and nothing outside is touched.
func TestFilesAreTakenOver(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		top := w.oldFiles(t)
		o := w.owners(t)
		user := w.user(t, w.member)
		if uid, gid, err := w.dirs.IDs(user); uid != 0 || gid != 0 || err != nil || !user.AwaitsTakeover {
			t.Errorf("before the takeover: %d, %d, %v", uid, gid, err)
		}
		if err := errors.Join(o.Pass(t.Context()), o.Pass(t.Context())); err != nil {
			t.Fatal(err)
		}
		group, mine := testIDs.First+w.project, testIDs.First+w.member
		for path, want := range map[string]rules.Attributes{
			"": {UID: before, GID: group, Mode: 0o2750}, "project_model": {UID: before, GID: group, Mode: 0o2770},
			"project_model/script": {UID: before, GID: group, Mode: 0o775}, "project_model/fifo": {UID: before, GID: group, Mode: 0o660},
			"project_model/link": {UID: before, GID: group, Mode: 0o777}, "project_dataset/names": {UID: before, GID: group, Mode: 0o664},
			"project_model/" + strings.Repeat("deep/", 199) + "deep": {UID: before, GID: group, Mode: 0o2775},
			filepath.Base(w.own()): {UID: mine, GID: group, Mode: 0o2770}, filepath.Base(w.own()) + "/key": {UID: mine, GID: group, Mode: 0o600},
			filepath.Base(w.own()) + "/" + TeamLink: {UID: mine, GID: group, Mode: 0o777},
			"../../canary":                          {Mode: 0o600}, "../../canary.d": {Mode: 0o700}, "project_model/hard": {Mode: 0o600},
		} {
			if got := attributesOf(t, filepath.Join(top, path)); got != want {
				t.Errorf("%s: %+v, want %+v", path, got, want)
			}
		}
		if uid, gid, err := w.dirs.IDs(w.user(t, w.member)); uid != mine || gid != group || err != nil {
			t.Errorf("after the takeover: %d, %d, %v", uid, gid, err)
		}
		if list, err := s.Read(t.Context()).FileTakeovers(); err != nil || len(list) != 0 {
			t.Errorf("left: %+v, %v", list, err)
		}
	})
}

// A takeover waits for the workspaces that run as the one owner of before.
func TestTakeoverWaitsForWorkspaces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		w.oldFiles(t)
		o := w.owners(t)
		row := w.workspace(t)
		if err := o.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := attributesOf(t, w.own()); got.UID != before {
			t.Errorf("taken from a running workspace: %+v", got)
		}
		storetest.InTx(t, s, func(q *store.Queries) error {
			row.State = models.StateStopped
			return q.Transition(&row, models.StateRunning, models.Text{})
		})
		if err := o.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := attributesOf(t, w.own()); got.UID != testIDs.First+w.member {
			t.Errorf("not taken over: %+v", got)
		}
	})
}

// manyFiles makes three directories, after each of which the progress is recorded.
func manyFiles(t *testing.T, top string) {
	t.Helper()
	for i := range 3 {
		dir := filepath.Join(top, "project_algorithm", string(rune('a'+i)))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for n := range savedEvery {
			if err := os.WriteFile(filepath.Join(dir, strings.Repeat("x", n%200+1)+string(rune('a'+n/200))), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A takeover that was interrupted continues where it was.
func TestTakeoverIsResumed(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"))
	top := w.oldFiles(t)
	manyFiles(t, top)
	o := w.owners(t)
	saved, stop := []string{}, errors.New("killed")
	err := o.correct(t.Context(), w.project, "", func(cursor string) error {
		if saved = append(saved, cursor); len(saved) == 2 {
			return stop
		}
		return nil
	})
	if !errors.Is(err, stop) || len(saved) != 2 || !strings.HasSuffix(saved[0], "/a") {
		t.Fatalf("%v, saved %v", err, saved)
	}
	untouched, left := filepath.Join(top, "project_algorithm/a/xa"), filepath.Join(top, "project_algorithm/c/xa")
	if got := attributesOf(t, left); got.Mode != 0o644 {
		t.Fatalf("%s was done: %+v", left, got)
	}
	if err := os.Chmod(untouched, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := o.correct(t.Context(), w.project, saved[0], func(string) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if got := attributesOf(t, left); got.Mode != 0o664 {
		t.Errorf("%s was not done: %+v", left, got)
	}
	if got := attributesOf(t, untouched); got.Mode != 0o600 {
		t.Errorf("%s was done again: %+v", untouched, got)
	}
}

// New projects have IDs from the beginning, and a range that is used stays where it is.
func TestNewProjectsHaveIDs(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		if os.Geteuid() != 0 {
			t.Skip("only root can change owners")
		}
		w := newWorld(t, s)
		o := w.owners(t)
		if err := o.Pass(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.dirs.MakeMember(t.Context(), w.project, w.member); err != nil {
			t.Fatal(err)
		}
		want := rules.Attributes{UID: testIDs.First + w.member, GID: testIDs.First + w.project, Mode: 0o2770}
		if got := attributesOf(t, w.own()); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
		moved, grown := testIDs, testIDs
		moved.First++
		grown.Last++
		if err := w.dirs.UseIDs(t.Context(), moved); err == nil || !strings.Contains(err.Error(), "1900500000") {
			t.Errorf("moved: %v", err)
		}
		if err := w.dirs.UseIDs(t.Context(), grown); err != nil {
			t.Error(err)
		}
		if list, err := s.Read(t.Context()).FileTakeovers(); err != nil || len(list) != 0 {
			t.Errorf("taken over again: %+v, %v", list, err)
		}
	})
}

// workspace is a running workspace of the member.
func (w *world) workspace(t *testing.T) models.Workspace {
	t.Helper()
	row := models.Workspace{ProjectID: w.project, MemberID: w.member, UserID: w.acting.User.ID, Name: "work", State: models.StateRunning,
		Target: []models.Parameter{}, Limits: []models.Limit{}, Version: 1, RequestedAt: w.store.Now()}
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		env := models.Environment{Name: "Python", Language: "python", LanguageVersion: "3.12", Version: 1}
		if err := q.CreateEnvironment(&env); err != nil {
			return err
		}
		row.EnvironmentID = env.ID
		return q.CreateWorkspace(&row, models.Text{})
	})
	return row
}
