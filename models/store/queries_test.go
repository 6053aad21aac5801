package store_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func migrate(t *testing.T, s *store.Store) {
	t.Helper()
	db, err := s.SQL()
	if err == nil {
		err = migrations.Up(t.Context(), db, s.Dialect())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// scoped calls every query that takes a scope, for the project of w.
func scoped(q *store.Queries, s store.Scope, w *world) map[string]error {
	is := func(found bool, err error) error {
		if err == nil && !found {
			return models.NotFound("row")
		}
		return err
	}
	errs := map[string]error{}
	_, errs["Project"] = q.Project(s, w.project.ID)
	_, errs["LockProject"] = q.LockProject(s, w.project.ID)
	projects, err := q.ListProjects(s, store.ProjectFilter{}, store.Page{})
	errs["Projects"] = is(slices.ContainsFunc(projects, func(p models.Project) bool { return p.ID == w.project.ID }), err)
	_, errs["Role"] = q.Role(s, w.project.ID, w.role.ID)
	roles, err := q.Roles(s, w.project.ID)
	errs["Roles"] = is(len(roles) > 0, err)
	_, errs["Member"] = q.Member(s, w.project.ID, w.member.ID)
	_, errs["MemberView"] = q.MemberView(s, w.project.ID, w.member.ID)
	members, err := q.Members(s, w.project.ID, store.Page{})
	errs["Members"] = is(len(members) > 0, err)
	_, errs["Workspace"] = q.Workspace(s, w.workspace.ID)
	_, errs["WorkspaceView"] = q.WorkspaceView(s, w.workspace.ID)
	list, err := q.Workspaces(s, store.WorkspaceFilter{OwnedFilter: store.OwnedFilter[models.WorkspaceState]{ProjectID: w.project.ID}}, store.Page{})
	errs["Workspaces"] = is(len(list) > 0, err)
	return errs
}

func TestScopes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		own, foreign := addWorld(t, s, "own"), addWorld(t, s, "foreign")
		removed, late := addWorld(t, s, "removed"), addWorld(t, s, "late")
		removed.member.RemovedAt, late.member.Until = ago(s, 0), ago(s, -time.Hour)
		storetest.InTx(t, s, func(q *store.Queries) error {
			if err := q.UpdateMember(&removed.member); err != nil {
				return err
			}
			return q.UpdateMember(&late.member)
		})
		before := late.scope()
		clock.Advance(time.Hour)
		q := s.Read(t.Context())
		for _, c := range []struct {
			name  string
			scope store.Scope
			of    *world
			sees  bool
		}{
			{"nobody", store.Scope{}, own, false},
			{"nobody, at a time", store.Scope{At: s.Now()}, own, false},
			{"a member", own.scope(), own, true},
			{"a member of another project", own.scope(), foreign, false},
			{"everything", store.AllProjects, foreign, true},
			{"a removed member", removed.scope(), removed, false},
			{"a member before the deadline", before, late, true},
			{"a member at the deadline", late.scope(), late, false},
		} {
			for query, err := range scoped(q, c.scope, c.of) {
				if (err == nil) != c.sees || err != nil && models.KindOf(err) != models.KindNotFound {
					t.Errorf("%s asks %s: %v", c.name, query, err)
				}
			}
		}
		// A role is not accessible through another project.
		_, err := q.Role(own.scope(), own.project.ID, foreign.role.ID)
		kind(t, err, models.KindNotFound)
		kind(t, s.InTx(t.Context(), func(q *store.Queries) error {
			return q.DeleteRole(own.scope(), foreign.project.ID, foreign.role.ID)
		}), models.KindNotFound)
	})
}

func TestTransitionExpectsStateAndVersion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		move := func(w models.Workspace, from, to models.WorkspaceState) (models.Workspace, error) {
			w.State = to
			err := s.InTx(t.Context(), func(q *store.Queries) error { return q.Transition(&w, from, models.Say("Moved.")) })
			return w, err
		}
		queued, err := move(w.workspace, models.StateRequested, models.StateQueued)
		if err != nil || queued.Version != 2 {
			t.Fatalf("version %d, %v", queued.Version, err)
		}
		stale, err := move(w.workspace, models.StateRequested, models.StateStopped)
		kind(t, err, models.KindConflict)
		if stale.Version != 1 {
			t.Errorf("a refused transition left version %d", stale.Version)
		}
		_, err = move(queued, models.StateStarting, models.StateRunning) // right version, wrong state
		kind(t, err, models.KindConflict)
		old := queued
		queued, err = move(queued, models.StateQueued, models.StateQueued)
		if err != nil || queued.Version != 3 {
			t.Fatalf("version %d, %v", queued.Version, err)
		}
		_, err = move(old, models.StateQueued, models.StateStarting) // right state, old version
		kind(t, err, models.KindConflict)
		got, err := s.Read(t.Context()).Workspace(store.AllProjects, queued.ID)
		if err != nil || got.State != models.StateQueued || got.Version != 3 {
			t.Errorf("the row is %s, version %d, %v", got.State, got.Version, err)
		}
		events, err := s.Read(t.Context()).WorkspaceEvents(queued.ID)
		if err != nil || len(events) != 3 || events[2].State != models.StateQueued {
			t.Errorf("events %+v, %v", events, err)
		}
		var kinds storetest.ErrorCounts
		storetest.Concurrently(16, func(int) {
			_, err := move(queued, models.StateQueued, models.StateStarting)
			kinds.Add(err)
		})
		kinds.Want(t, 1, models.KindConflict, 15)
	})
}

func TestStaleVersionsAreConflicts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		for what, update := range map[string]func(q *store.Queries) error{
			"project": func(q *store.Queries) error { p := w.project; return q.UpdateProject(&p) },
			"role":    func(q *store.Queries) error { r := w.role; return q.UpdateRole(&r) },
			"member":  func(q *store.Queries) error { m := w.member; return q.UpdateMember(&m) },
			"account": func(q *store.Queries) error { u := w.user; return q.UpdateUser(&u) },
		} {
			if err := s.InTx(t.Context(), update); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			if err := s.InTx(t.Context(), update); models.KindOf(err) != models.KindConflict {
				t.Errorf("%s again: %v", what, err)
			}
		}
	})
}

func TestTokenIsTakenOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		end := clock.Now().Add(time.Minute)
		put := func(hash string) {
			storetest.InTx(t, s, func(q *store.Queries) error {
				return q.PutOneTimeToken(models.OneTimeToken{Hash: hash, Purpose: "setup", ExpiresAt: end})
			})
		}
		take := func(hash, purpose string) error {
			return s.InTx(t.Context(), func(q *store.Queries) error {
				_, err := q.TakeOneTimeToken(hash, purpose, q.Now())
				return err
			})
		}
		put("once")
		kind(t, take("once", "open"), models.KindNotFound)
		kind(t, take("never", "setup"), models.KindNotFound)
		var kinds storetest.ErrorCounts
		storetest.Concurrently(50, func(int) { kinds.Add(take("once", "setup")) })
		kinds.Want(t, 1, models.KindNotFound, 49)
		put("late")
		clock.Advance(time.Minute)
		kind(t, take("late", "setup"), models.KindNotFound)
	})
}

func TestTakenNamesAreConflicts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		again := map[string]func(q *store.Queries) error{
			"email": func(q *store.Queries) error {
				return q.CreateUser(&models.User{Email: w.user.Email, CreatedAt: s.Now()})
			},
			"name": func(q *store.Queries) error {
				return q.CreateProject(&models.Project{Name: w.project.Name, StartsAt: s.Now(), CreatedAt: s.Now()})
			},
		}
		for field, create := range again {
			err := s.InTx(t.Context(), create)
			kind(t, err, models.KindConflict)
			var e *models.Error
			if !errors.As(err, &e) || len(e.Fields) != 1 || e.Fields[0].Name != field {
				t.Errorf("%v does not name %s alone", err, field)
			}
		}
		twice := w.workspace
		twice.ID = 0
		kind(t, s.InTx(t.Context(), func(q *store.Queries) error { return q.CreateWorkspace(&twice, models.Text{}) }), models.KindConflict)
		w.workspace.State = models.StateStopped // its name is free again
		storetest.InTx(t, s, func(q *store.Queries) error {
			if err := q.Transition(&w.workspace, models.StateRequested, models.Text{}); err != nil {
				return err
			}
			return q.CreateWorkspace(&twice, models.Say("Requested."))
		})
	})
}

// No text from a user causes an internal error.
func TestSearchesAcceptAnyText(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		newWorld(t, s)
		storetest.User(t, s, "under_score%@example.org", false)
		q := s.Read(t.Context())
		for _, text := range []string{"\x00", "a\x00b", "\xff", "'; DROP TABLE users; --", string(make([]byte, 100_000))} {
			if _, err := q.UserByEmail(text); models.KindOf(err) != models.KindNotFound {
				t.Errorf("address %.20q: %v", text, err)
			}
			if users, err := q.Users(text, store.Page{}); err != nil || len(users) > 0 {
				t.Errorf("search %.20q: %d, %v", text, len(users), err)
			}
		}
		for search, want := range map[string]int{"": 2, "ONE@": 1, "_": 1, "%": 1, "example": 2, `\`: 0} {
			if users, err := q.Users(search, store.Page{}); err != nil || len(users) != want {
				t.Errorf("search %q finds %d, %v; want %d", search, len(users), err, want)
			}
		}
	})
}

// A search ignores the case of all letters, on both databases.
func TestSearchIgnoresCase(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		for i, name := range []string{"Ödön ÁRPÁD", "Ирина Щербак", "李 Wei", "ΩMEGA"} {
			u := models.User{Email: fmt.Sprintf("u%d@example.org", i), Name: name, SessionGeneration: 1, Version: 1, CreatedAt: s.Now()}
			storetest.InTx(t, s, func(q *store.Queries) error { return q.CreateUser(&u) })
			for _, search := range []string{name, strings.ToLower(name), strings.ToUpper(name)} {
				users, err := s.Read(t.Context()).Users(search, store.Page{})
				if err != nil || len(users) != 1 || users[0].ID != u.ID {
					t.Errorf("%q finds %v, %v", search, users, err)
				}
			}
		}
	})
}

func TestHeldAndPromised(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		w.workspace.Demand = models.Demand{GPUs: 2, Cores: 50, GPUMemoryMiB: 7, CPUMilli: 3, MemoryMiB: 4}
		at := models.StateRequested
		for _, step := range []struct {
			state models.WorkspaceState
			inUse bool
		}{{models.StateQueued, false}, {models.StateStarting, true}, {models.StateRunning, true}, {models.StateStopping, true}, {models.StateStopped, false}} {
			from := at
			at = step.state
			w.workspace.State = at
			storetest.InTx(t, s, func(q *store.Queries) error { return q.Transition(&w.workspace, from, models.Text{}) })
			want := map[int64]models.Resources{}
			if step.inUse {
				want[w.member.ID] = models.Resources{GPUCores: 100, GPUMemoryMiB: 14, CPUMilli: 3, MemoryMiB: 4}
			}
			q := s.Read(t.Context())
			byMember, err1 := q.InUseByMembers(w.project.ID)
			project, err2 := q.InUseByProject(w.project.ID)
			member, err3 := q.InUseByMember(w.project.ID, w.member.ID)
			if err1 != nil || err2 != nil || err3 != nil || !maps.Equal(byMember, want) || project != want[w.member.ID] || member != project {
				t.Errorf("%s holds %+v, %+v, %+v (%v %v %v), want %+v", at, byMember, project, member, err1, err2, err3, want)
			}
			if at.UsesResources() != step.inUse || at.Ended() != (at == models.StateStopped) {
				t.Errorf("%s: Holding %t, Ended %t", at, at.UsesResources(), at.Ended())
			}
		}
	})
}
