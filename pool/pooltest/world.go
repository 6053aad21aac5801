package pooltest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/projects"
	"weir/pool/providers"
	"weir/storage"
)

// World is projects and a pool over one fresh store.
type World struct {
	*projects.Service
	Providers *providers.Service
	Pool      *pool.Scheduler
	Capacity  *projects.Capacity
	Access    *policies.Access
	Ctx       context.Context
	Store     *store.Store
	Clock     *storetest.Clock
	Root      policies.Actor
	people    int
}

// Each runs a test in a fresh world on each database.
func Each(t *testing.T, test func(t *testing.T, w *World)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(t, New(t, s)) })
}

// New is a world over a store that nobody else uses.
func New(t *testing.T, s *store.Store) *World {
	t.Helper()
	access, err1 := policies.NewAccess()
	verdicts, err2 := storage.NewVerdicts(s)
	dirs, err3 := storage.New(t.TempDir(), 0, 0, verdicts)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	machines := providers.New(s, access, nil)
	w := &World{Providers: machines, Pool: pool.New(s, access, machines), Access: access,
		Ctx: t.Context(), Store: s, Clock: storetest.NewClock(s)}
	w.Capacity = projects.NewCapacity(s, access, w.Pool, projects.Defaults{PerGPU: PerGPU})
	w.Service = projects.New(s, access, dirs, w.Capacity)
	w.Root = policies.Actor{User: storetest.User(t, s, "root@example.org", true)}
	return w
}

// NewPerson adds an account.
func (w *World) NewPerson(t *testing.T) models.User {
	t.Helper()
	w.people++
	return storetest.User(t, w.Store, fmt.Sprintf("user%d@example.org", w.people), false)
}

// Confirmed lets tests that are not about the capacity exceed it.
var Confirmed = projects.Confirmation{Confirm: true, Reason: "not what the test is about"}

// NewProject adds a project, whatever the capacity of the pool.
func (w *World) NewProject(t *testing.T, name string, quota models.Resources) models.Project {
	t.Helper()
	p, err := w.CreateProject(w.Ctx, w.Root, projects.ProjectInput{Name: name, Quota: quota.Input(), Confirmation: Confirmed})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// NewRole adds a role to a project.
func (w *World) NewRole(t *testing.T, project int64, name, permission string, limit models.Resources) models.Role {
	t.Helper()
	r, err := w.CreateRole(w.Ctx, w.Root, project, projects.RoleInput{Name: name, Permission: permission, Limit: limit.Input()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// NewMember adds an account and makes it a member.
func (w *World) NewMember(t *testing.T, r models.Role) (models.Member, models.User) {
	t.Helper()
	u := w.NewPerson(t)
	m, err := w.AddMember(w.Ctx, w.Root, r.ProjectID, projects.MemberInput{Email: u.Email, RoleID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	return m, u
}

// NewTeam adds a project with one member, who may use anything.
func (w *World) NewTeam(t *testing.T, name string) models.Member {
	t.Helper()
	all := models.Resources{GPUCores: 1e6, GPUMemoryMiB: 1e9, CPUMilli: 1e9, MemoryMiB: 1e9}
	p := w.NewProject(t, name, all)
	m, _ := w.NewMember(t, w.NewRole(t, p.ID, "all", "manager", all))
	return m
}

// Actor is who a user is now.
func (w *World) Actor(t *testing.T, u models.User) policies.Actor {
	t.Helper()
	now := w.Store.Now()
	memberships, err := w.Store.Read(w.Ctx).MembershipsOf(u.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	return policies.Actor{User: u, Grants: policies.GrantsOf(memberships), At: now}
}

// NewWorkspace puts a workspace of the member into the table as if it ran,
// without asking whether it may.
func (w *World) NewWorkspace(t *testing.T, m models.Member, d models.Demand) models.Workspace {
	t.Helper()
	row := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: w.Environment(t),
		Name:  policies.NewSecret(),
		State: models.StateRunning, Demand: d, Version: 1, RequestedAt: w.Store.Now()}
	storetest.InTx(t, w.Store, func(q *store.Queries) error { return q.CreateWorkspace(&row, models.Text{}) })
	return row
}

// Environment is one that workspaces can have.
func (w *World) Environment(t *testing.T) int64 {
	t.Helper()
	all, err := w.Store.Read(w.Ctx).Environments()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) > 0 {
		return all[0].ID
	}
	e := models.Environment{Name: "notebook", Language: "python", LanguageVersion: "3.11", Version: 1, CreatedAt: w.Store.Now()}
	storetest.InTx(t, w.Store, func(q *store.Queries) error { return q.CreateEnvironment(&e) })
	return e.ID
}

// EndProject moves the end of a project's period; nil is open.
func (w *World) EndProject(t *testing.T, p models.Project, end *time.Time) {
	t.Helper()
	NoError(t, Error(w.UpdateProject(w.Ctx, w.Root, p.ID, projects.ProjectInput{Name: p.Name, Quota: p.Quota.Input(), EndsAt: end,
		Confirmation: Confirmed})))
}

// EndMembership moves the end of a member's membership; nil is open.
func (w *World) EndMembership(t *testing.T, m models.Member, until *time.Time) {
	t.Helper()
	NoError(t, Error(w.UpdateMember(w.Ctx, w.Root, m.ProjectID, m.ID, projects.MemberInput{RoleID: m.RoleID, Until: until})))
}

// CapacityOf is one resource of the pool, beside what is allocated of it.
func (w *World) CapacityOf(t *testing.T, resource string) projects.CapacityRow {
	t.Helper()
	v, err := w.Capacity.View(w.Ctx, w.Root, store.Page{})
	NoError(t, err)
	for _, r := range v.Rows {
		if r.Name == resource {
			return r
		}
	}
	t.Fatalf("no row for %s", resource)
	return projects.CapacityRow{}
}

// SetOvercommit lets so many percent of each resource be allocated.
func (w *World) SetOvercommit(t *testing.T, percent int64, stated projects.Stated) {
	t.Helper()
	in := projects.OvercommitInput{Ratio: models.Resources{GPUCores: percent, GPUMemoryMiB: percent, CPUMilli: percent, MemoryMiB: percent,
		StorageMiB: percent}, Stated: stated}
	_, err := w.Capacity.Set(w.Ctx, w.Root, in)
	NoError(t, err)
}
