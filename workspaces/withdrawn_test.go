package workspaces_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/projects"
	"weir/storage/rules"
	"weir/workspaces"
)

// sharedFiles changes rules and directories of a world's project.
type sharedFiles struct {
	*testing.T
	*world
}

// in is a path in the project's directory of models.
func (f sharedFiles) in(name string) string {
	return rules.ProjectDir(f.project.ID) + "/project_model" + name
}

func (f sharedFiles) do(change func(q *store.Queries) error) { storetest.InTx(f, f.store, change) }

func (f sharedFiles) rule(name string, subject models.FileSubject, id int64, access models.FileAccess) {
	f.do(func(q *store.Queries) error {
		return q.PutFileRule(&models.FileRule{ProjectID: f.project.ID, Path: models.FilePath(f.in(name)), Subject: subject, SubjectID: id,
			Access: access, Download: models.DownloadInherit, ChangedAt: q.Now()})
	})
}

// everyone makes a rule for the members of the project.
func (f sharedFiles) everyone(name string, access models.FileAccess) {
	f.rule(name, models.SubjectProject, 0, access)
}

func (f sharedFiles) withdraw(name string) {
	f.do(func(q *store.Queries) error {
		list, err := q.FileRules(f.project.ID)
		i := slices.IndexFunc(list, func(r models.FileRule) bool { return string(r.Path) == f.in(name) })
		return errors.Join(err, q.DeleteFileRule(f.project.ID, list[i].ID))
	})
}

func (f sharedFiles) mkdir(name string) {
	if err := os.MkdirAll(filepath.Join(f.dirs.Root(), f.in(name)), 0o755); err != nil {
		f.Fatal(err)
	}
}

func (f sharedFiles) remove(name string) {
	if err := os.RemoveAll(filepath.Join(f.dirs.Root(), f.in(name))); err != nil {
		f.Fatal(err)
	}
}

func (f sharedFiles) create(name string) {
	if err := os.WriteFile(filepath.Join(f.dirs.Root(), f.in(name)), nil, 0o644); err != nil {
		f.Fatal(err)
	}
}

// withdrawals are changes while a workspace runs that cannot get other mounts.
var withdrawals = []struct {
	name   string
	before func(f sharedFiles)
	change func(f sharedFiles)
	stops  string // the path that it is stopped for; "-": it goes on
}{
	{"a rule that gave more is withdrawn",
		func(f sharedFiles) {
			f.mkdir("/x")
			f.everyone("", models.AccessRead)
			f.rule("/x", models.SubjectMember, f.member.ID, models.AccessWrite)
		},
		func(f sharedFiles) { f.withdraw("/x") }, "/x"},
	{"a mounted directory can only be read", nil, func(f sharedFiles) { f.everyone("", models.AccessRead) }, ""},
	{"and is hidden", func(f sharedFiles) { f.everyone("", models.AccessRead) }, func(f sharedFiles) { f.everyone("", models.AccessNone) }, ""},
	{"a rule denies a directory beneath", func(f sharedFiles) { f.mkdir("/x/y") }, func(f sharedFiles) { f.everyone("/x/y", models.AccessNone) }, "/x/y"},
	{"a rule denies a file beneath, which no mount expresses", func(f sharedFiles) { f.create("/file") }, func(f sharedFiles) { f.everyone("/file", models.AccessNone) }, "-"},
	{"a rule denies what does not exist", nil, func(f sharedFiles) { f.everyone("/x", models.AccessNone) }, "-"},
	{"which is created then", nil, func(f sharedFiles) { f.everyone("/x", models.AccessNone); f.mkdir("/x") }, "/x"},
	{"what an earlier rule denies is created", func(f sharedFiles) { f.everyone("/x", models.AccessNone) }, func(f sharedFiles) { f.mkdir("/x") }, "-"},
	{"a mounted directory is deleted",
		func(f sharedFiles) {
			f.mkdir("/x")
			f.everyone("", models.AccessRead)
			f.everyone("/x", models.AccessWrite)
		},
		func(f sharedFiles) { f.remove("/x") }, "-"},
	{"and its rule withdrawn",
		func(f sharedFiles) {
			f.mkdir("/x")
			f.everyone("", models.AccessRead)
			f.everyone("/x", models.AccessWrite)
		},
		func(f sharedFiles) { f.remove("/x"); f.withdraw("/x") }, "-"},
	{"more is given to what does not exist, withdrawn, and it is created",
		func(f sharedFiles) {
			f.everyone("", models.AccessRead)
			f.everyone("/x", models.AccessWrite)
		},
		func(f sharedFiles) { f.withdraw("/x"); f.mkdir("/x") }, "-"},
	{"rules give more", func(f sharedFiles) { f.everyone("", models.AccessNone) }, func(f sharedFiles) { f.everyone("", models.AccessRead) }, "-"},
	{"more, and again what they gave", func(f sharedFiles) { f.everyone("", models.AccessRead) },
		func(f sharedFiles) { f.everyone("", models.AccessWrite); f.everyone("", models.AccessRead) }, "-"},
	{"another role",
		func(f sharedFiles) {
			f.everyone("", models.AccessRead)
			f.rule("", models.SubjectRole, f.role.ID, models.AccessWrite)
		},
		func(f sharedFiles) {
			other := f.addRole(f.T, f.project, "other", f.role.Limit)
			if _, err := f.projects.UpdateMember(f.ctx, f.root, f.project.ID, f.member.ID, projects.MemberInput{RoleID: other.ID, Version: f.member.Version}); err != nil {
				f.Fatal(err)
			}
		}, ""},
	{"a storage limit is exceeded for too long", func(f sharedFiles) {
		f.do(func(q *store.Queries) error {
			return q.AddStorageUse(f.project.ID, models.StorageChange{Bytes: models.StorageShares{f.member.ID: 1}})
		})
	}, func(f sharedFiles) {
		f.do(func(q *store.Queries) error {
			return q.SetStorageReadOnly(models.StorageExcess{ProjectID: f.project.ID, MemberID: f.member.ID}, new(q.Now()))
		})
	}, "-"},
	{"it was started by a version that recorded nothing", nil, func(f sharedFiles) {
		f.everyone("", models.AccessNone)
		f.do(func(q *store.Queries) error {
			list, err := q.WorkspacesIn(models.StateRunning)
			list[0].FileAccess = nil
			return errors.Join(err, q.Transition(&list[0], models.StateRunning, models.Text{}))
		})
	}, "-"},
}

// Where only a restart can change the mounts, a workspace is stopped when rules give its
// member less access than when it started, and for nothing else. The member is told, and
// the next start has what the rules allow.
func TestWithdrawnAccessStopsAWorkspace(t *testing.T) {
	for _, c := range withdrawals {
		t.Run(c.name, func(t *testing.T) {
			each(t, func(t *testing.T, b *world) {
				b.runtime.fixed = errors.ErrUnsupported
				f := sharedFiles{t, b}
				if err := b.dirs.MakeProject(b.ctx, b.project.ID); err != nil {
					t.Fatal(err)
				}
				if c.before != nil {
					c.before(f)
				}
				w := b.until(t, b.launch(t, "a", gpu(0, 0)).ID, models.StateRunning)
				f.refreshed(w, "-") // nothing has changed
				c.change(f)
				f.refreshed(w, c.stops)
				if c.stops == "-" {
					return
				}
				b.until(t, w.ID, models.StateStopped)
				again := b.until(t, b.launch(t, "again", gpu(0, 0)).ID, models.StateRunning)
				f.refreshed(again, "-")
				if again.Mounts == w.Mounts {
					t.Error("the next start mounts the same")
				}
			})
		})
	}
}

// refreshed refreshes the mounts and checks for which path the workspace is stopped.
func (f sharedFiles) refreshed(w models.Workspace, stops string) {
	f.Helper()
	told := f.notified(f.T, "workspace.access-withdrawn")
	if err := f.RefreshAll(f.ctx); err != nil {
		f.Fatal(err)
	}
	got := f.row(f.T, w.ID)
	told = f.notified(f.T, "workspace.access-withdrawn") - told
	if stops == "-" {
		if got.State != models.StateRunning || told != 0 {
			f.Errorf("it is %s (%s), with %d notifications", got.State, got.Reason, told)
		}
		return
	}
	want := models.Say("Stopped: rules now give less access to %s. Start the workspace again to use what they allow.", f.in(stops))
	if got.State != models.StateStopping || got.Reason.String() != want.String() || told != 1 {
		f.Errorf("it is %s (%s), with %d notifications", got.State, got.Reason, told)
	}
}

// A link that begins a visit ends with all sessions of its user, before it was used.
func TestOpeningLinkEndsWithTheSessions(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		w := b.until(t, b.launch(t, "a", models.LaunchParameters{}).ID, models.StateRunning)
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			return q.PutSession(models.Session{Token: "session", Data: []byte{1}, UserID: &b.actor.User.ID, Generation: b.actor.User.SessionGeneration,
				ExpiresAt: q.Now().Add(time.Hour)})
		})
		for _, ended := range []bool{false, true} {
			token, err := b.Open(b.ctx, b.actor, w.ID, workspaces.OpenInput{})
			if err != nil {
				t.Fatal(err)
			}
			if ended {
				storetest.InTx(t, b.store, func(q *store.Queries) error {
					u, err := q.User(b.actor.User.ID)
					if err != nil {
						return err
					}
					u.SessionGeneration++
					return q.UpdateUser(&u)
				})
			}
			if _, err := b.Redeem(b.ctx, w.ID, token); (models.KindOf(err) == models.KindNotFound) != ended {
				t.Errorf("the sessions have ended: %v; %v", ended, err)
			}
		}
	})
}
