package pool_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/modelstest"
	"weir/policies"
	"weir/pool"
	"weir/storage"
)

// office is a ledger and a pool over one fresh store.
type office struct {
	*pool.Ledger
	pool  *pool.Pool
	ctx   context.Context
	store *models.Store
	clock *modelstest.Clock
	root  policies.Actor
	users int
}

func each(t *testing.T, test func(t *testing.T, o *office)) {
	modelstest.Each(t, func(t *testing.T, s *models.Store) { test(t, newOffice(t, s)) })
}

func newOffice(t *testing.T, s *models.Store) *office {
	t.Helper()
	access, err1 := policies.NewAccess()
	dirs, err2 := storage.New(t.TempDir(), 0, 0)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	o := &office{Ledger: pool.NewLedger(s, access, dirs), pool: pool.New(s, access), ctx: t.Context(), store: s, clock: modelstest.NewClock(s)}
	o.root = policies.Actor{User: modelstest.User(t, s, "root@example.org", true)}
	return o
}

// person adds an account.
func (o *office) person(t *testing.T) models.User {
	t.Helper()
	o.users++
	return modelstest.User(t, o.store, fmt.Sprintf("user%d@example.org", o.users), false)
}

func (o *office) project(t *testing.T, name string, quota models.Resources) models.Project {
	t.Helper()
	p, err := o.CreateProject(o.ctx, o.root, pool.ProjectInput{Name: name, Quota: quota})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (o *office) role(t *testing.T, project int64, name, permission string, peak models.Resources) models.Role {
	t.Helper()
	r, err := o.CreateRole(o.ctx, o.root, project, pool.RoleInput{Name: name, Permission: permission, Peak: peak})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (o *office) member(t *testing.T, r models.Role) (models.Member, models.User) {
	t.Helper()
	u := o.person(t)
	m, err := o.AddMember(o.ctx, o.root, r.ProjectID, pool.MemberInput{Email: u.Email, RoleID: r.ID})
	if err != nil {
		t.Fatal(err)
	}
	return m, u
}

// actor is who a user is now.
func (o *office) actor(t *testing.T, u models.User) policies.Actor {
	t.Helper()
	now := o.store.Now()
	memberships, err := o.store.Read(o.ctx).MembershipsOf(u.ID, now)
	if err != nil {
		t.Fatal(err)
	}
	return policies.Actor{User: u, Grants: policies.GrantsOf(memberships), At: now}
}

// holds puts a workspace of the member into the table as if it ran, without
// asking whether it may.
func (o *office) holds(t *testing.T, m models.Member, d models.Demand) models.Workspace {
	t.Helper()
	w := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: o.environment(t), Name: policies.NewSecret(),
		State: models.StateRunning, Demand: d, Version: 1, RequestedAt: o.store.Now()}
	modelstest.InTx(t, o.store, func(q *models.Queries) error { return q.CreateWorkspace(&w, models.Say("Running.")) })
	return w
}

func (o *office) environment(t *testing.T) int64 {
	t.Helper()
	all, err := o.store.Read(o.ctx).Environments()
	if err != nil {
		t.Fatal(err)
	}
	if len(all) > 0 {
		return all[0].ID
	}
	e := models.Environment{Name: "notebook", Language: "python", LanguageVersion: "3.11", Version: 1, CreatedAt: o.store.Now()}
	modelstest.InTx(t, o.store, func(q *models.Queries) error { return q.CreateEnvironment(&e) })
	return e.ID
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

func cores(n int64) models.Resources { return models.Resources{GPUCores: n} }

func TestRefusalsNameFieldAskedAndLeft(t *testing.T) {
	each(t, func(t *testing.T, o *office) {
		p := o.project(t, "vision", models.Resources{GPUCores: 200, CPUMilli: 4000})
		r := o.role(t, p.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 80, CPUMilli: 1000})
		big := o.role(t, p.ID, "big", models.PermissionMember, cores(150))
		m, _ := o.member(t, r)
		o.holds(t, m, models.Demand{GPUs: 1, Cores: 60, CPUMilli: 500})
		o.member(t, r)
		third := o.person(t)

		_, err := o.CreateRole(o.ctx, o.root, p.ID, pool.RoleInput{Name: "huge", Permission: "member", Peak: cores(201)})
		want(t, err, models.KindNoCapacity, "peak.gpu_cores", "201", "200")
		_, err = o.AddMember(o.ctx, o.root, p.ID, pool.MemberInput{Email: third.Email, RoleID: r.ID})
		want(t, err, models.KindNoCapacity, "role_id", "80", "40", "200")
		_, err = o.UpdateMember(o.ctx, o.root, p.ID, m.ID, pool.MemberInput{RoleID: big.ID})
		want(t, err, models.KindNoCapacity, "role_id", "70", "40", "200")
		_, err = o.UpdateRole(o.ctx, o.root, p.ID, r.ID, pool.RoleInput{Name: "engineer", Permission: "member", Peak: cores(101)})
		want(t, err, models.KindNoCapacity, "peak.gpu_cores", "42", "40", "2 members")
		_, err = o.UpdateRole(o.ctx, o.root, p.ID, r.ID, pool.RoleInput{Name: "engineer", Permission: "member", Peak: models.Resources{GPUCores: 59, CPUMilli: 500}})
		want(t, err, models.KindNoCapacity, "peak.gpu_cores", "60")
		small := o.role(t, p.ID, "small", models.PermissionMember, cores(10))
		_, err = o.UpdateMember(o.ctx, o.root, p.ID, m.ID, pool.MemberInput{RoleID: small.ID})
		want(t, err, models.KindNoCapacity, "role_id", "60", "10")
		_, err = o.UpdateProject(o.ctx, o.root, p.ID, pool.ProjectInput{Name: "vision", Quota: models.Resources{GPUCores: 159, CPUMilli: 2000}})
		want(t, err, models.KindNoCapacity, "quota.gpu_cores", "160")
		if err := o.RemoveMember(o.ctx, o.root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		_, err = o.UpdateProject(o.ctx, o.root, p.ID, pool.ProjectInput{Name: "vision", Quota: models.Resources{GPUCores: 80, CPUMilli: 499}})
		want(t, err, models.KindNoCapacity, "quota.cpu_milli")
		o.keepsRules(t, p.ID)
	})
}

// Who comes back while the old workspaces still run holds them again.
func TestReturningMemberMayNotHoldMoreThanTheNewRole(t *testing.T) {
	each(t, func(t *testing.T, o *office) {
		p := o.project(t, "vision", cores(200))
		r, small := o.role(t, p.ID, "engineer", "member", cores(100)), o.role(t, p.ID, "small", "member", cores(10))
		m, u := o.member(t, r)
		o.holds(t, m, models.Demand{GPUs: 1, Cores: 60})
		if err := o.RemoveMember(o.ctx, o.root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		_, err := o.AddMember(o.ctx, o.root, p.ID, pool.MemberInput{Email: u.Email, RoleID: small.ID})
		want(t, err, models.KindNoCapacity, "role_id", "60", "10")
		back, err := o.AddMember(o.ctx, o.root, p.ID, pool.MemberInput{Email: u.Email, RoleID: r.ID})
		if err != nil || back.ID != m.ID || back.RemovedAt != nil {
			t.Errorf("%+v, %v", back, err)
		}
		o.keepsRules(t, p.ID)
	})
}

func TestBadInputsOfTheLedger(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	early, late := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	each(t, func(t *testing.T, o *office) {
		p := o.project(t, "vision", cores(100))
		other := o.project(t, "speech", cores(100))
		r, foreign := o.role(t, p.ID, "engineer", "member", cores(10)), o.role(t, other.ID, "engineer", "member", cores(10))
		m, u := o.member(t, r)
		project := func(in pool.ProjectInput) error { _, err := o.CreateProject(o.ctx, o.root, in); return err }
		role := func(in pool.RoleInput) error { _, err := o.CreateRole(o.ctx, o.root, p.ID, in); return err }
		member := func(in pool.MemberInput) error { _, err := o.AddMember(o.ctx, o.root, p.ID, in); return err }
		now := o.store.Now()
		for name, c := range map[string]struct {
			err   error
			kind  models.Kind
			field string
		}{
			"empty name":         {project(pool.ProjectInput{}), models.KindInvalid, "name"},
			"long name":          {project(pool.ProjectInput{Name: long}), models.KindInvalid, "name"},
			"control in name":    {project(pool.ProjectInput{Name: "a\x00"}), models.KindInvalid, "name"},
			"taken name":         {project(pool.ProjectInput{Name: "vision"}), models.KindConflict, "name"},
			"long description":   {project(pool.ProjectInput{Name: "x", Description: long}), models.KindInvalid, "description"},
			"negative quota":     {project(pool.ProjectInput{Name: "x", Quota: cores(-1)}), models.KindInvalid, "quota.gpu_cores"},
			"overflowing quota":  {project(pool.ProjectInput{Name: "x", Quota: cores(1<<63 - 1)}), models.KindInvalid, "quota.gpu_cores"},
			"ends at its begin":  {project(pool.ProjectInput{Name: "x", EndsAt: &now}), models.KindInvalid, "ends_at"},
			"year before 1970":   {project(pool.ProjectInput{Name: "x", StartsAt: &early}), models.KindInvalid, "starts_at"},
			"year after 9999":    {project(pool.ProjectInput{Name: "x", EndsAt: &late}), models.KindInvalid, "ends_at"},
			"launch parameters":  {project(pool.ProjectInput{Name: "x", Launch: models.LaunchParameters{Env: map[string]string{"PATH": ""}}}), models.KindInvalid, "launch.env"},
			"unknown permission": {role(pool.RoleInput{Name: "x", Permission: "administrator"}), models.KindInvalid, "permission"},
			"negative peak":      {role(pool.RoleInput{Name: "x", Permission: "member", Peak: cores(-1)}), models.KindInvalid, "peak.gpu_cores"},
			"taken role":         {role(pool.RoleInput{Name: "engineer", Permission: "member"}), models.KindConflict, "name"},
			"unknown person":     {member(pool.MemberInput{Email: "x@example.org", RoleID: r.ID}), models.KindInvalid, "email"},
			"NUL in address":     {member(pool.MemberInput{Email: "\x00", RoleID: r.ID}), models.KindInvalid, "email"},
			"foreign role":       {member(pool.MemberInput{Email: o.root.User.Email, RoleID: foreign.ID}), models.KindInvalid, "role_id"},
			"no role":            {member(pool.MemberInput{Email: o.root.User.Email, RoleID: -1}), models.KindInvalid, "role_id"},
			"deadline now":       {member(pool.MemberInput{Email: o.root.User.Email, RoleID: r.ID, Until: &now}), models.KindInvalid, "until"},
			"deadline too late":  {member(pool.MemberInput{Email: o.root.User.Email, RoleID: r.ID, Until: &late}), models.KindInvalid, "until"},
			"member already":     {member(pool.MemberInput{Email: strings.ToUpper(u.Email), RoleID: r.ID}), models.KindConflict, "email"},
		} {
			var e *models.Error
			if !errors.As(c.err, &e) || e.Kind != c.kind || len(e.Fields) == 0 || e.Fields[0].Name != c.field {
				t.Errorf("%s: %v", name, c.err)
			}
		}
		for name, err := range map[string]error{
			"a project that is none":    second(o.UpdateProject(o.ctx, o.root, 99, pool.ProjectInput{Name: "x"})),
			"a role of another project": second(o.UpdateRole(o.ctx, o.root, p.ID, foreign.ID, pool.RoleInput{Name: "x", Permission: "member"})),
			"a member of another":       second(o.UpdateMember(o.ctx, o.root, other.ID, m.ID, pool.MemberInput{RoleID: foreign.ID})),
			"removal from another":      o.RemoveMember(o.ctx, o.root, other.ID, m.ID),
			"deletion in another":       o.DeleteRole(o.ctx, o.root, other.ID, r.ID),
		} {
			if models.KindOf(err) != models.KindNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
		want(t, o.DeleteRole(o.ctx, o.root, p.ID, r.ID), models.KindConflict, "1 members")
	})
}

func second[T any](_ T, err error) error { return err }

// Who may do what is policies' table; here it is that every method asks it.
func TestEveryMethodOfTheLedgerAsks(t *testing.T) {
	each(t, func(t *testing.T, o *office) {
		p := o.project(t, "vision", cores(100))
		r, boss := o.role(t, p.ID, "engineer", "member", cores(10)), o.role(t, p.ID, "lead", "manager", cores(10))
		m, memberUser := o.member(t, r)
		_, managerUser := o.member(t, boss)
		member, manager, stranger := o.actor(t, memberUser), o.actor(t, managerUser), o.actor(t, o.person(t))
		calls := []struct {
			name       string
			call       func(a policies.Actor) error
			permission string // the least
		}{
			{"read project", func(a policies.Actor) error { return second(o.Project(o.ctx, a, p.ID)) }, "member"},
			{"list roles", func(a policies.Actor) error { return second(o.Roles(o.ctx, a, p.ID)) }, "member"},
			{"read role", func(a policies.Actor) error { return second(o.Role(o.ctx, a, p.ID, r.ID)) }, "member"},
			{"list members", func(a policies.Actor) error { return second(o.Members(o.ctx, a, p.ID, models.Page{})) }, "member"},
			{"read member", func(a policies.Actor) error { return second(o.Member(o.ctx, a, p.ID, m.ID)) }, "member"},
			{"create role", func(a policies.Actor) error {
				return second(o.CreateRole(o.ctx, a, p.ID, pool.RoleInput{Name: policies.NewSecret(), Permission: "member"}))
			}, "manager"},
			{"update role", func(a policies.Actor) error {
				return second(o.UpdateRole(o.ctx, a, p.ID, r.ID, pool.RoleInput{Name: "engineer", Permission: "member", Peak: cores(10)}))
			}, "manager"},
			{"update member", func(a policies.Actor) error {
				return second(o.UpdateMember(o.ctx, a, p.ID, m.ID, pool.MemberInput{RoleID: r.ID}))
			}, "manager"},
			{"add member", func(a policies.Actor) error {
				return second(o.AddMember(o.ctx, a, p.ID, pool.MemberInput{Email: o.person(t).Email, RoleID: r.ID}))
			}, "manager"},
			{"update project", func(a policies.Actor) error {
				return second(o.UpdateProject(o.ctx, a, p.ID, pool.ProjectInput{Name: "vision", Quota: cores(100)}))
			}, "administrator"},
			{"create project", func(a policies.Actor) error {
				return second(o.CreateProject(o.ctx, a, pool.ProjectInput{Name: policies.NewSecret()}))
			}, "administrator"},
		}
		order := []string{"nobody", "stranger", "member", "manager", "administrator"}
		for rank, actor := range []policies.Actor{{}, stranger, member, manager, o.root} {
			for _, c := range calls {
				err := c.call(actor)
				if allowed := rank >= slices.Index(order, c.permission); (err == nil) != allowed {
					t.Errorf("%s: %s: %v", order[rank], c.name, err)
				}
				if kind := models.KindOf(err); rank == 0 && kind != models.KindUnauthenticated ||
					rank == 1 && c.name != "create project" && kind != models.KindNotFound {
					t.Errorf("%s: %s: %v", order[rank], c.name, err)
				}
			}
		}
		if list, err := o.ListProjects(o.ctx, stranger, pool.ProjectQuery{}, models.Page{}); err != nil || len(list) != 0 {
			t.Errorf("a stranger sees %d projects, %v", len(list), err)
		}
		if list, err := o.Mine(o.ctx, member); err != nil || len(list) != 1 || list[0].Room.Peak != cores(10) {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestEveryChangeOfTheLedgerIsAudited(t *testing.T) {
	each(t, func(t *testing.T, o *office) {
		p := o.project(t, "vision", cores(100))
		r := o.role(t, p.ID, "engineer", "member", cores(10))
		m, _ := o.member(t, r)
		spare := o.role(t, p.ID, "spare", "member", cores(0))
		for name, err := range map[string]error{
			"project":     second(o.UpdateProject(o.ctx, o.root, p.ID, pool.ProjectInput{Name: "sight", Quota: cores(90)})),
			"role":        second(o.UpdateRole(o.ctx, o.root, p.ID, r.ID, pool.RoleInput{Name: "engineer", Permission: "manager", Peak: cores(20)})),
			"member":      second(o.UpdateMember(o.ctx, o.root, p.ID, m.ID, pool.MemberInput{RoleID: r.ID})),
			"remove":      o.RemoveMember(o.ctx, o.root, p.ID, m.ID),
			"delete role": o.DeleteRole(o.ctx, o.root, p.ID, spare.ID),
			"stale":       nil,
		} {
			if err != nil && name != "stale" {
				t.Errorf("%s: %v", name, err)
			}
		}
		want(t, second(o.UpdateProject(o.ctx, o.root, p.ID, pool.ProjectInput{Name: "x", Quota: cores(90), Version: 1})), models.KindConflict)
		entries, err := o.store.Read(o.ctx).Audit(models.AuditFilter{}, models.Page{})
		counts := map[string]int{}
		for _, e := range entries {
			counts[e.Action+" "+e.Object]++
			if e.Actor != "root@example.org" || e.ProjectID == nil || *e.ProjectID != p.ID || (e.Action == "update") != (e.Before != "" && e.After != "") {
				t.Errorf("entry %+v", e)
			}
		}
		for _, what := range strings.Split("create project,update project,create member,update member,delete member,update role,delete role", ",") {
			if counts[what] != 1 {
				t.Errorf("%d entries say %s", counts[what], what)
			}
		}
		if err != nil || counts["create role"] != 2 || len(entries) != 9 {
			t.Errorf("%d entries: %v, %v", len(entries), counts, err)
		}
	})
}
