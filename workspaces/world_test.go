package workspaces_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/providers"
	"weir/storage"
	"weir/workspaces"
	"weir/workspaces/idleness"
)

// world is everything that runs workspaces, for real but for the runtime,
// which starts small processes, and the clock, which stands still.
type world struct {
	*workspaces.Service
	*workspaces.Reconciler
	ctx      context.Context
	store    *store.Store
	clock    *storetest.Clock
	projects *projects.Service
	pool     *pool.Scheduler
	machines *providers.Service
	dirs     *storage.Directories
	runtime  *processes
	activity func() (idleness.Observation, error) // of every workspace
	root     policies.Actor
	users    int
	project  models.Project
	role     models.Role
	member   models.Member
	actor    policies.Actor
	env      models.Environment
}

// plenty is more than any test asks for.
var plenty = models.Resources{GPUCores: 10_000, GPUMemoryMiB: 1e9, CPUMilli: 1e6, MemoryMiB: 1e7}

func each(t *testing.T, test func(t *testing.T, b *world)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(t, newWorld(t, s)) })
}

func newWorld(t *testing.T, s *store.Store) *world {
	t.Helper()
	access, err1 := policies.NewAccess()
	verdicts, err2 := storage.NewVerdicts(s)
	dirs, err3 := storage.New(t.TempDir(), 0, 0, verdicts)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	b := &world{ctx: t.Context(), store: s, clock: storetest.NewClock(s), runtime: newProcesses(t), dirs: dirs,
		machines: providers.New(s, access, nil),
		activity: func() (idleness.Observation, error) { return idleness.Observation{}, errors.New("no notebook") }}
	b.pool = pool.New(s, access, b.machines)
	b.projects = projects.New(s, access, dirs, projects.NewCapacity(s, access, b.pool, projects.Defaults{PerGPU: pooltest.PerGPU}))
	b.root = policies.Actor{User: storetest.User(t, s, "root@example.org", true)}
	b.Service = workspaces.NewService(s, access, b.pool)
	b.restart()
	b.env = b.environment(t, workspaces.EnvironmentInput{Name: "notebook", Command: []string{"/bin/sleep", "600"}})
	storetest.InTx(t, s, func(q *store.Queries) error {
		return q.PutSession(models.Session{Token: "session", Data: []byte{1}, ExpiresAt: q.Now().AddDate(10, 0, 0)})
	})
	b.project = b.addProject(t, "vision", plenty)
	b.role = b.addRole(t, b.project, "engineer", models.Resources{GPUCores: 200, GPUMemoryMiB: 160_000, CPUMilli: 8000, MemoryMiB: 16_384})
	b.member, b.actor = b.addMember(t, b.role)
	return b
}

// restart replaces the reconciler as a new process would.
func (b *world) restart() { b.restartWith(func(*workspaces.ReconcilerConfig) {}) }

// restartWith is restart with other collaborators.
func (b *world) restartWith(set func(*workspaces.ReconcilerConfig)) {
	c := workspaces.ReconcilerConfig{Store: b.store, Pool: b.pool,
		Storage: b.dirs, Runtime: b.runtime, Activity: func(context.Context, models.Endpoint, string) (idleness.Observation, error) { return b.activity() }, Logger: slog.New(slog.DiscardHandler),
		Env: func(context.Context, models.Workspace) (map[string]string, error) { return map[string]string{}, nil }}
	set(&c)
	b.Reconciler = workspaces.NewReconciler(c)
}

func (b *world) environment(t *testing.T, in workspaces.EnvironmentInput) models.Environment {
	t.Helper()
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	in.Language, in.LanguageVersion = "python", "3.11.2"
	e, err := workspaces.NewCatalog(b.store, access).Create(b.ctx, b.root, in)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (b *world) addProject(t *testing.T, name string, quota models.Resources) models.Project {
	t.Helper()
	p, err := b.projects.CreateProject(b.ctx, b.root, projects.ProjectInput{Name: name, Quota: quota.Input(),
		Confirmation: projects.Confirmation{Confirm: true, Reason: "a test"}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (b *world) addRole(t *testing.T, p models.Project, name string, limit models.Resources) models.Role {
	t.Helper()
	r, err := b.projects.CreateRole(b.ctx, b.root, p.ID, projects.RoleInput{Name: name, Permission: "member", Limit: limit.Input()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// addMember adds a person in the role and tells who that is.
func (b *world) addMember(t *testing.T, r models.Role) (models.Member, policies.Actor) {
	t.Helper()
	b.users++
	u := storetest.User(t, b.store, fmt.Sprintf("user%d@example.org", b.users), false)
	m, err := b.projects.AddMember(b.ctx, b.root, r.ProjectID, projects.MemberInput{Email: u.Email, RoleID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	return m, policies.Actor{User: u, Grants: map[int64]policies.Grant{r.ProjectID: {Role: r.ID, Permissions: r.Permits()}}, Session: "session", At: b.store.Now()}
}

// gpus makes the pool n devices of 80 000 MiB.
func (b *world) gpus(t *testing.T, n int) {
	t.Helper()
	var inventory devices
	for i := range n {
		inventory = append(inventory, providers.DeviceReport{UUID: fmt.Sprint("GPU-", i), Index: i, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 80_000, Simulated: true})
	}
	if err := b.machines.Enlist(b.ctx, providers.Host{Name: "node", Digest: providers.MachineDigest("node")}, inventory); err != nil {
		t.Fatal(err)
	}
}

type devices []providers.DeviceReport

func (d devices) Devices(context.Context) ([]providers.DeviceReport, error) { return d, nil }

// ask is a launch of the world's member.
func (b *world) ask(name string, request models.LaunchParameters) workspaces.LaunchInput {
	return workspaces.LaunchInput{ProjectID: b.project.ID, Name: name, Request: request}
}

func (b *world) launch(t *testing.T, name string, request models.LaunchParameters) models.Workspace {
	t.Helper()
	w, err := b.Launch(b.ctx, b.actor, b.ask(name, request))
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (b *world) row(t *testing.T, id int64) models.Workspace {
	t.Helper()
	w, err := b.store.Read(b.ctx).Workspace(store.AllProjects, id)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// until ticks the reconciler until a workspace is in the state.
func (b *world) until(t *testing.T, id int64, state models.WorkspaceState) models.Workspace {
	t.Helper()
	b.poll(t, fmt.Sprintf("workspace %d is %s", id, state), func() bool {
		b.Tick(b.ctx)
		return b.row(t, id).State == state
	})
	return b.row(t, id)
}

// poll asks again and again, with a deadline.
func (b *world) poll(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it never came to be that %s", what)
		}
	}
}

func (b *world) shares(t *testing.T) (cores int64) {
	t.Helper()
	open, err := b.store.Read(b.ctx).OpenSharesAmong(store.AllMachines)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range open {
		cores += s.Cores
	}
	return cores
}

func want(t *testing.T, err error, kind models.Kind, says ...string) {
	t.Helper()
	if err == nil || models.KindOf(err) != kind {
		t.Errorf("got %v, want %s", err, kind)
		return
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %q", err, s)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func gpu(gpus, cores int64) models.LaunchParameters {
	return models.LaunchParameters{GPUs: &gpus, Cores: &cores}
}
