package projects_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// identity is somebody new who comes in by a provider.
func (o *world) identity(t *testing.T) models.Identity {
	t.Helper()
	u := o.NewPerson(t)
	i := models.Identity{UserID: u.ID, Issuer: "https://id.example.org", Subject: u.Email, Email: u.Email, CreatedAt: o.Store.Now(), SeenAt: o.Store.Now()}
	storetest.InTx(t, o.Store, func(q *store.Queries) error { i.ID = 0; return q.CreateIdentity(&i) })
	return i
}

// follow is a sign-in with groups that give roles in one project.
func (o *world) follow(t *testing.T, i models.Identity, project string, roles ...string) projects.SyncResult {
	t.Helper()
	var wanted []policies.ProjectRole
	for _, r := range roles {
		wanted = append(wanted, policies.ProjectRole{Project: project, Role: r})
	}
	f, err := o.SyncGroups(o.Ctx, i, wanted)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// has is the role that somebody has in the only project, or nothing.
func (o *world) has(t *testing.T, i models.Identity) string {
	t.Helper()
	list, err := o.Store.Read(o.Ctx).MembershipsOf(i.UserID, o.Store.Now())
	if err != nil {
		t.Fatal(err)
	}
	names := ""
	for _, m := range list {
		names += m.RoleName
	}
	return names
}

func TestGroupsGiveTheFirstRoleThatFits(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(250))
		o.NewRole(t, p.ID, "lead", models.PermissionManager, pooltest.Cores(200))
		o.NewRole(t, p.ID, "engineer", models.PermissionMember, pooltest.Cores(100))
		kim, lee := o.identity(t), o.identity(t)
		for _, step := range []struct {
			who   models.Identity
			roles []string
			has   string
			notes int
		}{
			{kim, []string{"engineer"}, "engineer", 0},
			{lee, []string{"lead", "engineer"}, "engineer", 1}, // 150 are left
			{lee, []string{"lead", "engineer"}, "engineer", 1},
			{kim, []string{"lead"}, "", 1}, // what it had is no group's any more
			{lee, []string{"lead", "engineer"}, "lead", 0},
			{kim, []string{"engineer", "lead"}, "", 2},
			{lee, []string{"none"}, "", 1},
			{kim, []string{"engineer", "engineer"}, "engineer", 0},
			{kim, nil, "", 0},
			{kim, nil, "", 0},
		} {
			f := o.follow(t, step.who, "vision", step.roles...)
			if got := o.has(t, step.who); got != step.has || len(f.Notes) != step.notes {
				t.Errorf("%v gave %q with %v, want %q", step.roles, got, f.Notes, step.has)
			}
		}
		if f := o.follow(t, kim, "speech", "engineer"); f.Changed || len(f.Notes) != 1 || !strings.Contains(f.Notes[0].String(), "speech") {
			t.Errorf("a project that is not there: %+v", f)
		}
	})
}

func TestAPlaceOfSomebodyHereIsNoGroups(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(1000))
		lead := o.NewRole(t, p.ID, "lead", models.PermissionManager, pooltest.Cores(200))
		engineer := o.NewRole(t, p.ID, "engineer", models.PermissionMember, pooltest.Cores(100))
		kim := o.identity(t)
		in := projects.MemberInput{Email: kim.Email, RoleID: lead.ID}
		m, err := o.AddMember(o.Ctx, o.Root, p.ID, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, roles := range [][]string{{"engineer"}, nil} {
			if f := o.follow(t, kim, "vision", roles...); f.Changed || o.has(t, kim) != "lead" {
				t.Errorf("%v changed it to %q", roles, o.has(t, kim))
			}
		}
		if err := o.RemoveMember(o.Ctx, o.Root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		if o.follow(t, kim, "vision", "engineer"); o.has(t, kim) != "engineer" {
			t.Errorf("a group's place is %q", o.has(t, kim))
		}
		until := o.Store.Now().Add(time.Hour)
		if _, err := o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: lead.ID, Until: &until}); err != nil {
			t.Fatal(err)
		}
		if o.follow(t, kim, "vision", "engineer"); o.has(t, kim) != "engineer" {
			t.Errorf("a group's place that was changed here is %q", o.has(t, kim))
		}
		if err := o.RemoveMember(o.Ctx, o.Root, p.ID, m.ID); err != nil {
			t.Fatal(err)
		}
		in.RoleID = engineer.ID
		if _, err := o.AddMember(o.Ctx, o.Root, p.ID, in); err != nil {
			t.Fatal(err)
		}
		if o.follow(t, kim, "vision"); o.has(t, kim) != "engineer" {
			t.Error("a group took what somebody here gave afterwards")
		}
	})
}

func TestGroupsKeepWhatIsHeld(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(1000))
		o.NewRole(t, p.ID, "lead", models.PermissionManager, pooltest.Cores(200))
		o.NewRole(t, p.ID, "engineer", models.PermissionMember, pooltest.Cores(100))
		kim := o.identity(t)
		o.follow(t, kim, "vision", "lead")
		m, err := o.Store.Read(o.Ctx).Membership(p.ID, kim.UserID)
		if err != nil {
			t.Fatal(err)
		}
		o.NewWorkspace(t, m, models.Demand{GPUs: 2, Cores: 75})
		f := o.follow(t, kim, "vision", "engineer") // 150 are held: neither may stay
		if o.has(t, kim) != "" || !f.Changed || len(f.Notes) != 1 || !strings.Contains(f.Notes[0].String(), "150") {
			t.Errorf("%q with %v", o.has(t, kim), f.Notes)
		}
	})
}

// However many come at once, the peaks stay within the quota.
func TestGroupsKeepTheQuotaUnderLoad(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(350))
		o.NewRole(t, p.ID, "engineer", models.PermissionMember, pooltest.Cores(100))
		people := make([]models.Identity, 8)
		for i := range people {
			people[i] = o.identity(t)
		}
		refused := make([]int, len(people))
		storetest.Concurrently(len(people), func(i int) {
			f, err := o.SyncGroups(o.Ctx, people[i], []policies.ProjectRole{{Project: "vision", Role: "engineer"}})
			if err != nil {
				t.Error(err)
			}
			refused[i] = len(f.Notes)
		})
		sum := 0
		for _, n := range refused {
			sum += n
		}
		allocated, err := o.Store.Read(o.Ctx).AllocatedLimits(p.ID)
		if err != nil || allocated.GPUCores != 300 || sum != 5 {
			t.Errorf("%d cores are allocated, %s, %v", allocated.GPUCores, fmt.Sprint(refused), err)
		}
	})
}
