package projects_test

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/quota"
)

// A project is started with what its preview shows, and all members of the number
// that was given can join it.
func TestStart(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		w.Enlist(t, pooltest.Machine(4))
		in := projects.StartInput{Name: "speech", Members: 3}
		preview, err := w.PreviewStart(w.Ctx, w.Root, in)
		pooltest.NoError(t, err)
		v, err := w.Start(w.Ctx, w.Root, in)
		pooltest.NoError(t, err)
		for i, a := range v.Project.Quota.Amounts() {
			if preview.Quota[i].Amount.Value != a.Value || preview.Limit[i].Value != v.Owner.Limit.Amounts()[i].Value {
				t.Errorf("%s: %+v and %+v are created, the preview shows %+v and %+v", a.Name, v.Project.Quota, v.Owner.Limit, preview.Quota, preview.Limit)
			}
		}
		if v.Project.Quota.GPUCores != 400 || v.Owner.Limit != v.Member.Limit || v.Owner.Limit.GPUCores != 133 || v.Membership.UserID != w.Root.User.ID {
			t.Errorf("%+v", v)
		}
		if l := v.Project.Launch; *l.GPUs != 1 || *l.Cores != 100 {
			t.Errorf("launch parameters %+v", l)
		}
		w.NewMember(t, v.Member)
		w.NewMember(t, v.Member)
		_, err = w.AddMember(w.Ctx, w.Root, v.Project.ID, projects.MemberInput{Email: w.NewPerson(t).Email, RoleID: v.Member.ID})
		pooltest.WantError(t, err, models.KindNoCapacity, "GPU cores")
		w.CheckRules(t, v.Project.ID)
	})
}

// A start that is refused leaves nothing, and of two at once one succeeds.
func TestStartIsAllOrNothing(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		w.Enlist(t, pooltest.Machine(1))
		count := func(want int) {
			t.Helper()
			list, err := w.ListProjects(w.Ctx, w.Root, projects.ProjectQuery{}, store.Page{})
			if err != nil || len(list) != want {
				t.Fatalf("%d projects, want %d, %v", len(list), want, err)
			}
		}
		negative := pooltest.Cores(-1).Input()
		for _, c := range []struct {
			in   projects.StartInput
			says string
		}{
			{projects.StartInput{Members: 2}, "name"},
			{projects.StartInput{Name: "x", Members: 101}, "must be at most 100"},
			{projects.StartInput{Name: "x", Members: 10_000}, "must be from 1 to 1000"},
			{projects.StartInput{Name: "x", Members: -1}, "must be from 1 to 1000"},
			{projects.StartInput{Name: "x", Quota: negative}, "quota.gpu_cores"},
			{projects.StartInput{Name: "x", Members: 1, Quota: models.ResourcesInput{CPUMilli: new(int64(0))}}, "must be at most 0"},
		} {
			pooltest.WantError(t, pooltest.Error(w.Start(w.Ctx, w.Root, c.in)), models.KindInvalid, c.says)
		}
		disabled := w.Root
		disabled.User.Email = "nobody@example.org"
		pooltest.WantError(t, pooltest.Error(w.Start(w.Ctx, disabled, projects.StartInput{Name: "half"})), models.KindInvalid, "email")
		pooltest.WantError(t, pooltest.Error(w.Start(w.Ctx, w.Actor(t, w.NewPerson(t)), projects.StartInput{Name: "mine"})), models.KindForbidden)
		count(0)
		errs := make([]error, 2)
		storetest.Concurrently(2, func(i int) { _, errs[i] = w.Start(w.Ctx, w.Root, projects.StartInput{Name: "speech"}) })
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Fatalf("two at once: %v", errs)
		}
		pooltest.WantError(t, cmp.Or(errs...), models.KindConflict, "name")
		count(1)
	})
}

// Those invited can all be members; a refused address leaves nothing.
func TestStartInvites(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		w.Enlist(t, pooltest.Machine(4))
		emails := []string{"ann@example.org", "Bob@example.org", "cy@example.org", "dee@example.org"}
		v, err := w.Start(w.Ctx, w.Root, projects.StartInput{Name: "speech", Emails: emails})
		pooltest.NoError(t, err)
		if len(v.Invited) != 4 || v.Owner.Limit.GPUCores != 80 { // among five
			t.Fatalf("%+v", v)
		}
		for i, got := range v.Invited {
			if got.Email != strings.ToLower(emails[i]) || *got.ProjectID != v.Project.ID || *got.RoleID != v.Member.ID || got.Link.Secret == "" {
				t.Errorf("invited %+v", got)
			}
		}
		for _, c := range []struct {
			in   projects.StartInput
			says string
		}{
			{projects.StartInput{Name: "x", Members: 4, Emails: emails}, "must be at least 5"},
			{projects.StartInput{Name: "x", Emails: []string{"ann@example.org", "nobody"}}, "emails[1]"},
			{projects.StartInput{Name: "x", Emails: []string{"ann@example.org", "ANN@example.org"}}, "emails[1]"},
			{projects.StartInput{Name: "x", Emails: []string{w.Root.User.Email}}, "already a member"},
			{projects.StartInput{Name: "x", Emails: make([]string, 101)}, "at most 100"},
		} {
			pooltest.WantError(t, pooltest.Error(w.Start(w.Ctx, w.Root, c.in)), models.KindInvalid, c.says)
		}
		list, err := w.ListProjects(w.Ctx, w.Root, projects.ProjectQuery{}, store.Page{})
		if err != nil || len(list) != 1 {
			t.Errorf("%d projects, %v", len(list), err)
		}
	})
}

// Whatever quota and number of members are given, what Start creates obeys the rules,
// with as many members as were given.
func TestStartObeysTheRules(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		w.Enlist(t, pooltest.Machine(4))
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			in := projects.StartInput{Name: fmt.Sprint("p", n), Members: rapid.Int64Range(0, 40).Draw(rt, "members"),
				Confirmation: pooltest.Confirmed}
			if rapid.Bool().Draw(rt, "given") {
				q := pooltest.DrawResources(rt, 0, 5000).Input()
				q.MemoryMiB, q.StorageMiB = nil, new(models.Unlimited)
				in.Quota = q
			}
			v, err := w.Start(w.Ctx, w.Root, in)
			if models.KindOf(err) == models.KindInvalid {
				return
			}
			if err != nil {
				rt.Fatal(err)
			}
			members := max(in.Members, 1)
			if over := v.Owner.Limit.Times(members).Exceeding(v.Project.Quota); len(over) > 0 {
				rt.Fatalf("%d members with %+v exceed %+v", members, v.Owner.Limit, v.Project.Quota)
			}
			if v.Project.Quota.GPUCores > 0 && v.Owner.Limit.GPUCores == 0 || v.Owner.Limit.CPUMilli < 10 || v.Owner.Limit.MemoryMiB < 64 {
				rt.Fatalf("nobody can launch with %+v", v.Owner.Limit)
			}
			w.CheckRules(t, v.Project.ID)
		})
	})
}

// An unlimited quota has room for everything, and a limit is unlimited only there.
func TestUnlimitedQuota(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		all := models.Resources{GPUCores: 100, CPUMilli: models.Unlimited, MemoryMiB: models.Unlimited}
		p := w.NewProject(t, "open", all)
		r := w.NewRole(t, p.ID, "all", "member", models.Resources{CPUMilli: models.Unlimited, MemoryMiB: 1 << 20})
		for range 3 {
			w.NewMember(t, r)
		}
		w.CheckRules(t, p.ID)
		v, err := w.Project(w.Ctx, w.Root, p.ID)
		if err != nil || v.Quota != all || v.Quota.Sub(v.Allocated).CPUMilli != models.Unlimited {
			t.Errorf("%+v, %v", v, err)
		}
		finite := all
		finite.CPUMilli = 1_000_000
		_, err = w.UpdateProject(w.Ctx, w.Root, p.ID, projects.ProjectInput{Name: p.Name, Quota: finite.Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "quota.cpu_milli")
		bounded := w.NewProject(t, "bounded", finite)
		_, err = w.CreateRole(w.Ctx, w.Root, bounded.ID, projects.RoleInput{Name: "all", Permission: "member", Limit: models.Resources{CPUMilli: models.Unlimited}.Input()})
		pooltest.WantError(t, err, models.KindNoCapacity, "limit.cpu_milli")
		if row := w.CapacityOf(t, "cpu_milli"); !models.IsUnlimited(row.Value) || row.Beyond(1) != 0 {
			t.Errorf("capacity %+v", row)
		}
	})
}

// A limit that is left open is a part of the quota; of a role that cannot launch it is
// none, so that its members allocate nothing.
func TestOpenLimits(t *testing.T) {
	pooltest.Each(t, func(t *testing.T, w *pooltest.World) {
		p := w.NewProject(t, "team", models.Resources{GPUCores: 400, GPUMemoryMiB: 4000, CPUMilli: 8000, MemoryMiB: 16_000, StorageMiB: 40})
		member, err := w.CreateRole(w.Ctx, w.Root, p.ID, projects.RoleInput{Name: "member", Permission: "member"})
		want := models.Resources{GPUCores: 100, GPUMemoryMiB: 1000, CPUMilli: 2000, MemoryMiB: 4000, StorageMiB: 10}
		if err != nil || member.Limit != want {
			t.Errorf("%+v, %v", member, err)
		}
		viewer, err := w.CreateRole(w.Ctx, w.Root, p.ID, projects.RoleInput{Name: "viewer", Permission: "viewer"})
		if err != nil || viewer.Limit != (models.Resources{}) {
			t.Errorf("%+v, %v", viewer, err)
		}
		v, err := w.Preview(w.Ctx, w.Root, p.ID, projects.PreviewInput{Role: &projects.RolePreview{Permission: "viewer"}})
		if err != nil || v.Filled[0].Source != quota.NoLaunch || v.Filled[0].Value != 0 {
			t.Errorf("%+v, %v", v.Filled, err)
		}
	})
}
