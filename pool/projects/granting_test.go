package projects_test

import (
	"slices"
	"testing"

	"weir/models"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// Nobody puts off the end of their own membership; a shorter one is theirs
// to choose, and another manager may do it.
func TestNobodyExtendsThemselves(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		h := newExample(t, o)
		boss := h.Actor(t, h.Boss)
		soon, later := o.Store.Now().AddDate(0, 1, 0), o.Store.Now().AddDate(0, 2, 0)
		put := func(a policies.Actor, in projects.MemberInput) error {
			in.RoleID = h.Lead.ID
			return pooltest.Error(h.UpdateMember(h.Ctx, a, h.Vision.ID, h.BossMember.ID, in))
		}
		pooltest.NoError(t, put(boss, projects.MemberInput{Until: &soon}))
		pooltest.WantError(t, put(boss, projects.MemberInput{Until: &later}), models.KindForbidden, "You cannot extend your own membership.")
		pooltest.WantError(t, put(boss, projects.MemberInput{}), models.KindForbidden)
		_, deputy := o.NewMember(t, h.Lead)
		pooltest.NoError(t, put(h.Actor(t, deputy), projects.MemberInput{Until: &later}))
		pooltest.NoError(t, put(h.Root, projects.MemberInput{}))
	})
}

// An owner describes the project, and no more of it.
func TestDescribingAProject(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		_, u := o.NewMember(t, o.NewRole(t, p.ID, "owner", models.PermissionOwner, pooltest.Cores(10)))
		_, m := o.NewMember(t, o.NewRole(t, p.ID, "lead", models.PermissionManager, pooltest.Cores(10)))
		owner := o.Actor(t, u)
		in := projects.ProjectInput{Name: "sight", Description: "what we see"}
		got, err := o.UpdateProject(o.Ctx, owner, p.ID, in)
		if err != nil || got.Name != "sight" || got.Quota != p.Quota || !got.StartsAt.Equal(p.StartsAt) || got.Priority != p.Priority {
			t.Errorf("%+v, %v", got, err)
		}
		in.Quota, in.Priority = pooltest.Cores(101).Input(), p.Priority+1
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, owner, p.ID, in)), models.KindForbidden, "quota.gpu_cores", "priority")
		end := o.Store.Now().AddDate(1, 0, 0)
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, owner, p.ID, projects.ProjectInput{Name: "sight", EndsAt: &end})), models.KindForbidden, "ends_at")
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, o.Actor(t, m), p.ID, projects.ProjectInput{Name: "mine"})), models.KindForbidden)

		listed := projects.ProjectInput{Name: "sight", Quota: pooltest.Cores(100).Input(),
			Outgoing: &models.Outgoing{Access: models.OutgoingListed, Hosts: []string{"PyPI.org", "10.0.0.0/8", "pypi.org"}}}
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, owner, p.ID, listed)), models.KindForbidden, "outgoing")
		if got, err = o.UpdateProject(o.Ctx, o.Root, p.ID, listed); err != nil || !slices.Equal(got.Outgoing.Hosts, []string{"10.0.0.0/8", "pypi.org"}) {
			t.Errorf("%+v, %v", got.Outgoing, err)
		}
		for _, in := range []projects.ProjectInput{{Name: "sight"}, {Name: "sight", Outgoing: &got.Outgoing},
			{Name: "sight", Outgoing: &models.Outgoing{Access: models.OutgoingListed, Hosts: []string{"PYPI.org", "10.0.0.0/8"}}}} {
			again, err := o.UpdateProject(o.Ctx, owner, p.ID, in)
			if err != nil || !again.Outgoing.Equal(got.Outgoing) {
				t.Errorf("%+v, %v", again.Outgoing, err)
			}
		}
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, o.Root, p.ID, projects.ProjectInput{Name: "sight",
			Outgoing: &models.Outgoing{Access: models.OutgoingListed}})), models.KindInvalid, "outgoing.hosts")

		// A variable such as JUPYTER_CONFIG_PATH runs programs in the
		// workspaces of all others.
		env := projects.ProjectInput{Name: "sight", Quota: pooltest.Cores(100).Input(), Launch: models.LaunchParameters{Env: map[string]string{"JUPYTER_CONFIG_PATH": "/notebook/1/1"}}}
		pooltest.WantError(t, pooltest.Error(o.UpdateProject(o.Ctx, owner, p.ID, env)), models.KindForbidden, "launch.env")
		if _, err := o.UpdateProject(o.Ctx, o.Root, p.ID, env); err != nil {
			t.Fatal(err)
		}
		path := "/lab"
		got, err = o.UpdateProject(o.Ctx, owner, p.ID, projects.ProjectInput{Name: "sight", Launch: models.LaunchParameters{Path: &path}})
		if err != nil || got.Launch.Env["JUPYTER_CONFIG_PATH"] == "" || got.Launch.Path == nil || *got.Launch.Path != "/lab" {
			t.Errorf("%+v, %v", got.Launch, err)
		}
	})
}
