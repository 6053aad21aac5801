package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/storage"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// world is a project with a manager and a member, and a stranger.
type world struct {
	*Service
	store                      *store.Store
	rules                      *storage.Service
	clock                      *storetest.Clock
	path                       string // of the root
	project, member            int64
	managing, acting, stranger policies.Actor
}

// Measure measures a project to the end.
func (w *world) Measure(ctx context.Context, project int64) error {
	for {
		if done, err := w.measure(ctx, project, 0); done || err != nil {
			return err
		}
	}
}

func each(t *testing.T, test func(t *testing.T, w *world)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(t, newWorld(t, s, t.TempDir())) })
}

const quotaMiB = 100

func newWorld(t testing.TB, s *store.Store, root string) *world {
	t.Helper()
	w := &world{store: s, clock: storetest.NewClock(s)}
	w.open(t, root)
	storetest.InTx(t, s, func(q *store.Queries) error {
		p := models.Project{Name: "vision", StartsAt: q.Now(), Version: 1, CreatedAt: q.Now(), Quota: models.Resources{StorageMiB: quotaMiB}}
		err := q.CreateProject(&p)
		w.project = p.ID
		return err
	})
	w.managing, _ = w.join(t, models.PermissionManager)
	w.acting, w.member = w.join(t, models.PermissionMember)
	w.stranger = policies.Actor{User: storetest.User(t, s, "stranger@example.org", false)}
	dirs, err := storage.New(root, 0, 0, w.Verdicts)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(dirs.MakeProject(t.Context(), w.project), dirs.MakeMember(t.Context(), w.project, w.member)); err != nil {
		t.Fatal(err)
	}
	return w
}

// open makes the service over a root.
func (w *world) open(t testing.TB, root string) {
	t.Helper()
	access, err1 := policies.NewAccess()
	verdicts, err2 := storage.NewVerdicts(w.store)
	r, err3 := beneath.OpenRoot(root, beneath.Owner{})
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	w.path, w.rules = root, storage.NewService(w.store, access, verdicts)
	w.Service = New(Config{Store: w.store, Accounts: policies.NewAccounts(w.store, access), Access: access, Verdicts: verdicts, Root: r, Logger: slog.New(slog.DiscardHandler),
		Settings: Settings{TrashAge: 30 * 24 * time.Hour, VersionAge: 7 * 24 * time.Hour, Grace: 7 * 24 * time.Hour, Archive: DefaultArchiveLimits}})
	w.space = func() (free, size int64, err error) { return 1 << 40, 1 << 41, nil } // whatever this machine has
}

func (w *world) join(t testing.TB, permission string) (policies.Actor, int64) {
	t.Helper()
	u := storetest.User(t, w.store, permission+"@example.org", false)
	var m models.Member
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		r := models.Role{ProjectID: w.project, Name: permission, Permission: permission, Limit: models.Resources{StorageMiB: quotaMiB}, Version: 1, CreatedAt: q.Now()}
		if err := q.CreateRole(&r); err != nil {
			return err
		}
		m = models.Member{ProjectID: w.project, UserID: u.ID, RoleID: r.ID, Version: 1, CreatedAt: q.Now()}
		return q.CreateMember(&m)
	})
	memberships, err := w.store.Read(t.Context()).MembershipsOf(u.ID, w.store.Now())
	if err != nil {
		t.Fatal(err)
	}
	return policies.Actor{User: u, Grants: policies.GrantsOf(memberships), At: w.store.Now()}, m.ID
}

// at is a path in the project's directory of models.
func (w *world) at(name string) models.FilePath {
	return models.FilePath(rules.ProjectDir(w.project) + "/project_model/" + name)
}

// disk is where a path is on the disk.
func (w *world) disk(path models.FilePath) string { return filepath.Join(w.path, string(path)) }

func (w *world) rule(t *testing.T, path models.FilePath, access models.FileAccess, download models.FileDownload) models.FileRule {
	t.Helper()
	r, err := w.rules.Put(t.Context(), w.managing, w.project, storage.RuleInput{Path: path, Subject: models.SubjectMember, SubjectID: w.member, Access: access, Download: download})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) write(t testing.TB, path models.FilePath, content string) Entry {
	t.Helper()
	e, err := w.Write(t.Context(), w.acting, w.project, path, strings.NewReader(content), int64(len(content)), Condition{})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (w *world) read(t testing.TB, path models.FilePath) string {
	t.Helper()
	c, err := w.Open(t.Context(), w.acting, w.project, path, false)
	if err != nil {
		return string(models.KindOf(err))
	}
	defer c.Close()
	content, err := io.ReadAll(c.File)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func (w *world) names(t testing.TB, path models.FilePath) string {
	t.Helper()
	l, err := w.List(t.Context(), w.acting, w.project, ListQuery{Path: path, Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range l.Entries {
		names = append(names, e.Name)
	}
	return strings.Join(names, " ")
}

// settled checks that nothing is in progress or left over, and that the use is so many
// bytes, as a measurement finds too.
func (w *world) settled(t testing.TB, used int64) {
	t.Helper()
	q := w.store.Read(t.Context())
	use, err := q.StorageUse(w.project)
	if err != nil || use.Used != used || use.Reserved != 0 {
		t.Errorf("%+v, %v; want %d used", use, err, used)
	}
	if operations, err := q.ExpiredFileOperations(w.store.Now().AddDate(1, 0, 0)); err != nil || len(operations) != 0 {
		t.Errorf("in progress: %+v, %v", operations, err)
	}
	if left, err := os.ReadDir(w.meta("tmp")); err != nil && !errors.Is(err, fs.ErrNotExist) || len(left) != 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
	if err := w.Measure(t.Context(), w.project); err != nil {
		t.Error(err)
	}
	if measured, err := q.StorageUse(w.project); err != nil || measured.Used != used {
		t.Errorf("measured %d, %v; want %d", measured.Used, err, used)
	}
}

func (w *world) meta(kind string) string {
	return filepath.Join(w.path, ".weir/projects", fmt.Sprint(w.project), kind)
}

// actions are the audited actions, the newest first.
func (w *world) actions(t testing.TB) string {
	t.Helper()
	entries, err := w.store.Read(t.Context()).Audit(store.AuditFilter{ProjectID: w.project}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		list = append(list, e.Action)
	}
	return strings.Join(list, " ")
}
