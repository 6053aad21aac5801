package store_test

import (
	"errors"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

var errSecret = errors.New("secret")

// world is one project with a role, a member and its workspace.
type world struct {
	store     *store.Store
	user      models.User
	project   models.Project
	role      models.Role
	member    models.Member
	workspace models.Workspace
}

func newWorld(t *testing.T, s *store.Store) *world {
	t.Helper()
	return addWorld(t, s, "one")
}

func addWorld(t *testing.T, s *store.Store, name string) *world {
	t.Helper()
	w := &world{store: s, user: storetest.User(t, s, name+"@example.org", false)}
	now := s.Now()
	storetest.InTx(t, s, func(q *store.Queries) error {
		w.project = models.Project{Name: name, StartsAt: now, Version: 1, CreatedAt: now, Quota: models.Resources{GPUCores: 800, CPUMilli: 8000}}
		if err := q.CreateProject(&w.project); err != nil {
			return err
		}
		w.role = models.Role{ProjectID: w.project.ID, Name: "engineer", Permission: models.PermissionMember, Version: 1, CreatedAt: now}
		if err := q.CreateRole(&w.role); err != nil {
			return err
		}
		w.member = models.Member{ProjectID: w.project.ID, UserID: w.user.ID, RoleID: w.role.ID, Version: 1, CreatedAt: now}
		if err := q.CreateMember(&w.member); err != nil {
			return err
		}
		env := models.Environment{Name: name, Language: "python", LanguageVersion: "3.11", Version: 1, CreatedAt: now}
		if err := q.CreateEnvironment(&env); err != nil {
			return err
		}
		w.workspace = models.Workspace{ProjectID: w.project.ID, MemberID: w.member.ID, UserID: w.user.ID, EnvironmentID: env.ID,
			Name: "notebook", State: models.StateRequested, Demand: models.Demand{CPUMilli: 1000}, Version: 1, RequestedAt: now}
		return q.CreateWorkspace(&w.workspace, models.Say("Requested."))
	})
	return w
}

func (w *world) event(t *testing.T, text models.Text) {
	t.Helper()
	storetest.InTx(t, w.store, func(q *store.Queries) error { return q.AddEvent(&w.workspace, text) })
}

// scope is the present scope of the user.
func (w *world) scope() store.Scope {
	return store.Scope{UserID: w.user.ID, At: w.store.Now()}
}

func kind(t *testing.T, err error, want models.Kind) {
	t.Helper()
	if got := models.KindOf(err); err == nil || got != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func ago(s *store.Store, d time.Duration) *time.Time {
	at := s.Now().Add(-d)
	return &at
}
