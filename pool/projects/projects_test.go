package projects_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

func TestRefusalsNameFieldAskedAndLeft(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", models.Resources{GPUCores: 200, CPUMilli: 4000})
		r := o.NewRole(t, p.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 80, CPUMilli: 1000})
		big := o.NewRole(t, p.ID, "big", models.PermissionMember, pooltest.Cores(150))
		m, _ := o.NewMember(t, r)
		o.NewWorkspace(t, m, models.Demand{GPUs: 1, Cores: 60, CPUMilli: 500})
		o.NewMember(t, r)
		third := o.NewPerson(t)

		_, err := o.CreateRole(o.Ctx, o.Root, p.ID, projects.RoleInput{Name: "huge", Permission: "member", Limit: pooltest.Cores(201).Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "limit.gpu_cores", "201", "200")
		_, err = o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: third.Email, RoleID: r.ID})
		pooltest.WantError(t, err, models.KindNoCapacity, "role_id", "80", "40", "200")
		_, err = o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: big.ID})
		pooltest.WantError(t, err, models.KindNoCapacity, "role_id", "70", "40", "200")
		_, err = o.UpdateRole(o.Ctx, o.Root, p.ID, r.ID, projects.RoleInput{Name: "engineer", Permission: "member", Limit: pooltest.Cores(101).Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "limit.gpu_cores", "42", "40", "2 members")
		_, err = o.UpdateRole(o.Ctx, o.Root, p.ID, r.ID, projects.RoleInput{Name: "engineer", Permission: "member", Limit: models.Resources{GPUCores: 59, CPUMilli: 500}.Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "limit.gpu_cores", "60")
		small := o.NewRole(t, p.ID, "small", models.PermissionMember, pooltest.Cores(10))
		_, err = o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: small.ID})
		pooltest.WantError(t, err, models.KindNoCapacity, "role_id", "60", "10")
		_, err = o.UpdateProject(o.Ctx, o.Root, p.ID, projects.ProjectInput{Name: "vision", Quota: models.Resources{GPUCores: 159, CPUMilli: 2000}.Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "quota.gpu_cores", "160")
		if err := o.RemoveMember(o.Ctx, o.Root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		_, err = o.UpdateProject(o.Ctx, o.Root, p.ID, projects.ProjectInput{Name: "vision", Quota: models.Resources{GPUCores: 80, CPUMilli: 499}.Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "quota.cpu_milli")
		o.CheckRules(t, p.ID)
	})
}

// Who comes back while the old workspaces still run holds them again.
func TestReturningMemberMayNotHoldMoreThanTheNewRole(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(200))
		r, small := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(100)), o.NewRole(t, p.ID, "small", "member", pooltest.Cores(10))
		m, u := o.NewMember(t, r)
		o.NewWorkspace(t, m, models.Demand{GPUs: 1, Cores: 60})
		if err := o.RemoveMember(o.Ctx, o.Root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		_, err := o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: u.Email, RoleID: small.ID})
		pooltest.WantError(t, err, models.KindNoCapacity, "role_id", "60", "10")
		back, err := o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: u.Email, RoleID: r.ID})
		if err != nil || back.ID != m.ID || back.RemovedAt != nil {
			t.Errorf("%+v, %v", back, err)
		}
		o.CheckRules(t, p.ID)
	})
}

func TestBadInputsOfTheLedger(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	early, late := time.Date(1969, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		other := o.NewProject(t, "speech", pooltest.Cores(100))
		r, foreign := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10)), o.NewRole(t, other.ID, "engineer", "member", pooltest.Cores(10))
		m, u := o.NewMember(t, r)
		project := func(in projects.ProjectInput) error { _, err := o.CreateProject(o.Ctx, o.Root, in); return err }
		role := func(in projects.RoleInput) error { _, err := o.CreateRole(o.Ctx, o.Root, p.ID, in); return err }
		member := func(in projects.MemberInput) error { _, err := o.AddMember(o.Ctx, o.Root, p.ID, in); return err }
		now := o.Store.Now()
		for name, c := range map[string]struct {
			err   error
			kind  models.Kind
			field string
		}{
			"empty name":         {project(projects.ProjectInput{}), models.KindInvalid, "name"},
			"long name":          {project(projects.ProjectInput{Name: long}), models.KindInvalid, "name"},
			"control in name":    {project(projects.ProjectInput{Name: "a\x00"}), models.KindInvalid, "name"},
			"taken name":         {project(projects.ProjectInput{Name: "vision"}), models.KindConflict, "name"},
			"long description":   {project(projects.ProjectInput{Name: "x", Description: long}), models.KindInvalid, "description"},
			"negative quota":     {project(projects.ProjectInput{Name: "x", Quota: pooltest.Cores(-1).Input()}), models.KindInvalid, "quota.gpu_cores"},
			"overflowing quota":  {project(projects.ProjectInput{Name: "x", Quota: pooltest.Cores(1<<63 - 1).Input()}), models.KindInvalid, "quota.gpu_cores"},
			"ends at its begin":  {project(projects.ProjectInput{Name: "x", EndsAt: &now}), models.KindInvalid, "ends_at"},
			"year before 1970":   {project(projects.ProjectInput{Name: "x", StartsAt: &early}), models.KindInvalid, "starts_at"},
			"year after 9999":    {project(projects.ProjectInput{Name: "x", EndsAt: &late}), models.KindInvalid, "ends_at"},
			"launch parameters":  {project(projects.ProjectInput{Name: "x", Launch: models.LaunchParameters{Env: map[string]string{"PATH": ""}}}), models.KindInvalid, "launch.env"},
			"unknown permission": {role(projects.RoleInput{Name: "x", Permission: "administrator"}), models.KindInvalid, "permission"},
			"negative limit":     {role(projects.RoleInput{Name: "x", Permission: "member", Limit: pooltest.Cores(-1).Input()}), models.KindInvalid, "limit.gpu_cores"},
			"taken role":         {role(projects.RoleInput{Name: "engineer", Permission: "member"}), models.KindConflict, "name"},
			"unknown person":     {member(projects.MemberInput{Email: "x@example.org", RoleID: r.ID}), models.KindInvalid, "email"},
			"NUL in address":     {member(projects.MemberInput{Email: "\x00", RoleID: r.ID}), models.KindInvalid, "email"},
			"foreign role":       {member(projects.MemberInput{Email: o.Root.User.Email, RoleID: foreign.ID}), models.KindInvalid, "role_id"},
			"no role":            {member(projects.MemberInput{Email: o.Root.User.Email, RoleID: -1}), models.KindInvalid, "role_id"},
			"deadline now":       {member(projects.MemberInput{Email: o.Root.User.Email, RoleID: r.ID, Until: &now}), models.KindInvalid, "until"},
			"deadline too late":  {member(projects.MemberInput{Email: o.Root.User.Email, RoleID: r.ID, Until: &late}), models.KindInvalid, "until"},
			"member already":     {member(projects.MemberInput{Email: strings.ToUpper(u.Email), RoleID: r.ID}), models.KindConflict, "email"},
		} {
			var e *models.Error
			if !errors.As(c.err, &e) || e.Kind != c.kind || len(e.Fields) == 0 || e.Fields[0].Name != c.field {
				t.Errorf("%s: %v", name, c.err)
			}
		}
		for name, err := range map[string]error{
			"a project that is none":    pooltest.Error(o.UpdateProject(o.Ctx, o.Root, 99, projects.ProjectInput{Name: "x"})),
			"a role of another project": pooltest.Error(o.UpdateRole(o.Ctx, o.Root, p.ID, foreign.ID, projects.RoleInput{Name: "x", Permission: "member"})),
			"a member of another":       pooltest.Error(o.UpdateMember(o.Ctx, o.Root, other.ID, m.ID, projects.MemberInput{RoleID: foreign.ID})),
			"removal from another":      o.RemoveMember(o.Ctx, o.Root, other.ID, m.ID),
			"deletion in another":       o.DeleteRole(o.Ctx, o.Root, other.ID, r.ID),
		} {
			if models.KindOf(err) != models.KindNotFound {
				t.Errorf("%s: %v", name, err)
			}
		}
		pooltest.WantError(t, o.DeleteRole(o.Ctx, o.Root, p.ID, r.ID), models.KindConflict, "1 member has this role")
	})
}

// Who may do what is policies' table; here it is that every method asks it.
func TestEveryMethodOfTheLedgerAsks(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r, boss := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10)), o.NewRole(t, p.ID, "lead", "manager", pooltest.Cores(10))
		m, memberUser := o.NewMember(t, r)
		_, managerUser := o.NewMember(t, boss)
		member, manager, stranger := o.Actor(t, memberUser), o.Actor(t, managerUser), o.Actor(t, o.NewPerson(t))
		calls := []struct {
			name       string
			call       func(a policies.Actor) error
			permission string // the least
		}{
			{"read project", func(a policies.Actor) error { return pooltest.Error(o.Project(o.Ctx, a, p.ID)) }, "member"},
			{"list roles", func(a policies.Actor) error { return pooltest.Error(o.Roles(o.Ctx, a, p.ID)) }, "member"},
			{"read role", func(a policies.Actor) error { return pooltest.Error(o.Role(o.Ctx, a, p.ID, r.ID)) }, "member"},
			{"list members", func(a policies.Actor) error { return pooltest.Error(o.Members(o.Ctx, a, p.ID, store.Page{})) }, "member"},
			{"read member", func(a policies.Actor) error { return pooltest.Error(o.Member(o.Ctx, a, p.ID, m.ID)) }, "member"},
			{"create role", func(a policies.Actor) error {
				return pooltest.Error(o.CreateRole(o.Ctx, a, p.ID, projects.RoleInput{Name: policies.NewSecret(), Permission: "member"}))
			}, "manager"},
			{"update role", func(a policies.Actor) error {
				return pooltest.Error(o.UpdateRole(o.Ctx, a, p.ID, r.ID, projects.RoleInput{Name: "engineer", Permission: "member", Limit: pooltest.Cores(10).Input()}))
			}, "manager"},
			{"update member", func(a policies.Actor) error {
				return pooltest.Error(o.UpdateMember(o.Ctx, a, p.ID, m.ID, projects.MemberInput{RoleID: r.ID}))
			}, "manager"},
			{"add member", func(a policies.Actor) error {
				return pooltest.Error(o.AddMember(o.Ctx, a, p.ID, projects.MemberInput{Email: o.NewPerson(t).Email, RoleID: r.ID}))
			}, "manager"},
			{"update project", func(a policies.Actor) error {
				return pooltest.Error(o.UpdateProject(o.Ctx, a, p.ID, projects.ProjectInput{Name: "vision", Quota: pooltest.Cores(100).Input()}))
			}, "administrator"},
			{"create project", func(a policies.Actor) error {
				return pooltest.Error(o.CreateProject(o.Ctx, a, projects.ProjectInput{Name: policies.NewSecret()}))
			}, "administrator"},
		}
		order := []string{"nobody", "stranger", "member", "manager", "administrator"}
		for rank, actor := range []policies.Actor{{}, stranger, member, manager, o.Root} {
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
		if list, err := o.ListProjects(o.Ctx, stranger, projects.ProjectQuery{}, store.Page{}); err != nil || len(list) != 0 {
			t.Errorf("a stranger sees %d projects, %v", len(list), err)
		}
		if list, err := o.Memberships(o.Ctx, member, member.User.ID); err != nil || len(list) != 1 || list[0].Use.Limit != pooltest.Cores(10) {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestEveryChangeOfTheLedgerIsAudited(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		r := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10))
		m, _ := o.NewMember(t, r)
		spare := o.NewRole(t, p.ID, "spare", "member", pooltest.Cores(0))
		for name, err := range map[string]error{
			"project":     pooltest.Error(o.UpdateProject(o.Ctx, o.Root, p.ID, projects.ProjectInput{Name: "sight", Quota: pooltest.Cores(90).Input()})),
			"role":        pooltest.Error(o.UpdateRole(o.Ctx, o.Root, p.ID, r.ID, projects.RoleInput{Name: "engineer", Permission: "manager", Limit: pooltest.Cores(20).Input()})),
			"member":      pooltest.Error(o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: r.ID})),
			"remove":      o.RemoveMember(o.Ctx, o.Root, p.ID, m.ID),
			"delete role": o.DeleteRole(o.Ctx, o.Root, p.ID, spare.ID),
			"stale":       nil,
		} {
			if err != nil && name != "stale" {
				t.Errorf("%s: %v", name, err)
			}
		}
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, o.Root, p.ID, projects.ProjectInput{Name: "x", Quota: pooltest.Cores(90).Input(), Version: 1})), models.KindConflict)
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{}, store.Page{})
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
