package storagetest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage"
	"weir/storage/rules"
)

// World is a project with members, directories and files, over a store and shared
// directories of the test's own.
type World struct {
	Store   *store.Store
	Dirs    *storage.Directories
	Project int64
	Members map[string]models.Member // ann, ben and cid
	Users   map[string]models.User
	other   int64 // another project
}

// names of the members.
var names = []string{"ann", "ben", "cid"}

// New creates a world.
func New(t *testing.T, store *store.Store, dirs *storage.Directories) *World {
	t.Helper()
	w := &World{Store: store, Dirs: dirs, Members: map[string]models.Member{}, Users: map[string]models.User{}}
	for _, name := range names {
		w.Users[name] = storetest.User(t, store, name+"@cases.example.org", false)
	}
	storetest.InTx(t, store, w.create)
	w.makeFiles(t)
	return w
}

func (w *World) create(q *store.Queries) error {
	p := models.Project{Name: "cases", StartsAt: q.Now(), Version: 1, CreatedAt: q.Now(), Quota: models.Resources{StorageMiB: 100}}
	o := models.Project{Name: "elsewhere", StartsAt: q.Now(), Version: 1, CreatedAt: q.Now()}
	if err := errors.Join(q.CreateProject(&p), q.CreateProject(&o)); err != nil {
		return err
	}
	w.Project, w.other = p.ID, o.ID
	r := models.Role{ProjectID: p.ID, Name: "engineer", Permission: models.PermissionMember, Limit: models.Resources{StorageMiB: 20},
		Version: 1, CreatedAt: q.Now()}
	if err := q.CreateRole(&r); err != nil {
		return err
	}
	for _, name := range names {
		m := models.Member{ProjectID: p.ID, UserID: w.Users[name].ID, RoleID: r.ID, Version: 1, CreatedAt: q.Now()}
		if err := q.CreateMember(&m); err != nil {
			return err
		}
		w.Members[name] = m
	}
	left, now := w.Members["cid"], q.Now()
	left.RemovedAt = &now
	return errors.Join(q.UpdateMember(&left),
		q.CreateHandover(&models.Handover{ProjectID: p.ID, MemberID: left.ID, ToMemberID: w.Members["ben"].ID, At: now}))
}

// makeFiles creates the directories, and files as members would have.
func (w *World) makeFiles(t *testing.T) {
	t.Helper()
	ctx := t.Context()
	err := errors.Join(w.Dirs.MakeProject(ctx, w.Project), w.Dirs.MakeProject(ctx, w.other))
	dirs := []string{model, top, inner, "/notebook/{q}/project_model", "/public_model"}
	for _, name := range names {
		err = errors.Join(err, w.Dirs.MakeMember(ctx, w.Project, w.Members[name].ID))
		own := "/notebook/{p}/{" + name + "}"
		dirs = append(dirs, own, own+"/sub")
	}
	for _, dir := range dirs {
		err = errors.Join(err, w.makeDir(dir))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// makeDir creates a directory with a file, with the owner of the directory above.
func (w *World) makeDir(path string) error {
	dir := w.Disk(path)
	above, err := os.Stat(filepath.Dir(dir))
	if err != nil {
		return err
	}
	uid, gid := storage.OwnerOf(above)
	err = os.Mkdir(dir, 0o755)
	if err == nil {
		err = errors.Join(os.Lchown(dir, uid, gid), os.Chmod(dir, above.Mode()))
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	self, err := os.Stat(dir)
	if err != nil {
		return err
	}
	uid, gid = storage.OwnerOf(self)
	file := filepath.Join(dir, "file")
	return errors.Join(os.WriteFile(file, []byte("content"), 0o600), os.Lchown(file, uid, gid), os.Chmod(file, self.Mode().Perm()&0o666))
}

// Expand returns the path that a path of a case stands for.
func (w *World) Expand(path string) string {
	pairs := []string{"{p}", strconv.FormatInt(w.Project, 10), "{q}", strconv.FormatInt(w.other, 10)}
	for name, m := range w.Members {
		pairs = append(pairs, "{"+name+"}", strconv.FormatInt(m.ID, 10))
	}
	return strings.NewReplacer(pairs...).Replace(path)
}

// Disk is where a path of a case is on this machine.
func (w *World) Disk(path string) string { return filepath.Join(w.Dirs.Root(), w.Expand(path)) }

// DirectoryUser is a member as the rules see it now.
func (w *World) DirectoryUser(t *testing.T, who string) models.DirectoryUser {
	t.Helper()
	u, err := w.Store.Read(t.Context()).DirectoryUser(w.Project, w.Members[who].ID)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// apply sets the rules to those of a set. The rules of another set are removed.
func (w *World) apply(t *testing.T, s Set) {
	t.Helper()
	storetest.InTx(t, w.Store, func(q *store.Queries) error {
		list, err := q.FileRules(w.Project)
		for _, r := range list {
			err = errors.Join(err, q.DeleteFileRule(w.Project, r.ID))
		}
		for i, r := range slices.Concat(s.Rules, s.Kept) {
			row := models.FileRule{ProjectID: w.Project, Path: models.FilePath(w.Expand(r.Path)), Subject: models.FileSubject(r.Subject),
				Access:   r.Access,
				Download: models.DownloadInherit, ChangedAt: q.Now()}
			if i >= len(s.Rules) {
				row.Download = models.DownloadDeny
			}
			switch m, ok := w.Members[r.Subject]; {
			case ok:
				row.Subject, row.SubjectID = models.SubjectMember, m.ID
			case r.Subject == "role":
				row.SubjectID = w.Members["ann"].RoleID
			}
			err = errors.Join(err, q.PutFileRule(&row))
		}
		p, readErr := q.Project(store.AllProjects, w.Project)
		if p.EndsAt = nil; s.Ended {
			now := q.Now()
			p.EndsAt = &now
		}
		return errors.Join(err, readErr, q.UpdateProject(&p))
	})
	if err := os.RemoveAll(w.Disk(later)); err != nil {
		t.Fatal(err)
	}
}

// limited reports whether a path is one of those that the mounts of a member cannot
// express.
func (w *World) limited(t *testing.T, who, path string) bool {
	t.Helper()
	plan, err := w.Dirs.MountPlan(t.Context(), w.DirectoryUser(t, who))
	if err != nil {
		t.Fatal(err)
	}
	return rules.Limited(plan.Limitations, w.Expand(path))
}
