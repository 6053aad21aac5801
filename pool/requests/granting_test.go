package requests_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/requests"
)

// escalation is people who are no administrators, and try to become more than
// they are.
type escalation struct {
	*example
	t        *testing.T
	rt       *rapid.T
	accounts *policies.Accounts
	projects []models.Project
	people   []models.User
	asked    []int64
	named    int
	bounds   map[int64]models.Permissions // by project, what all of them had together at first
	edits    int                          // that were permitted
}

// rights are what somebody may do, by project.
type rights map[int64]models.Permissions

// rights reads what a person may do now.
func (w *escalation) rights(u models.User) rights {
	got := rights{}
	for project, grant := range w.Actor(w.t, u).Grants {
		got[project] = grant.Permissions
	}
	return got
}

// together is what all of them may do.
func (w *escalation) together() rights {
	all := rights{}
	for _, u := range w.people {
		for project, set := range w.rights(u) {
			all[project] |= set
		}
	}
	return all
}

// input is a role of any rights, or as often of no more than within.
func (w *escalation) input(within models.Permissions) projects.RoleInput {
	w.named++
	set := models.Permissions(rapid.Uint32Range(1, uint32(models.AllPermissions)).Draw(w.rt, "permissions"))
	if rapid.Bool().Draw(w.rt, "within") {
		set &= within
	}
	return projects.RoleInput{Name: fmt.Sprint("role ", w.named), Permission: models.PermissionCustom, Permissions: (set | models.ProjectRead).Names(), Limit: pooltest.Cores(1).Input()}
}

func newEscalation(t *testing.T, rt *rapid.T, h *example, accounts *policies.Accounts, run int) *escalation {
	w := &escalation{example: h, t: t, rt: rt, accounts: accounts}
	for range 4 {
		w.people = append(w.people, h.NewPerson(t))
	}
	for i := range 2 {
		p := h.NewProject(t, fmt.Sprint("plot ", run, " ", i), pooltest.Cores(1000))
		pooltest.NoError(t, h.SetJoinRequests(h.Ctx, h.Root, p.ID, true))
		w.projects = append(w.projects, p)
		for n := range 3 {
			in := w.input(models.AllPermissions)
			in.Permissions = append(in.Permissions, []string{"role:write", "member:write", "request:decide"}[n])
			_, err := h.CreateRole(h.Ctx, h.Root, p.ID, in)
			pooltest.NoError(t, err)
		}
		for _, who := range w.people[:3] {
			_, err := h.AddMember(h.Ctx, h.Root, p.ID, projects.MemberInput{Email: who.Email, RoleID: w.someRole(p.ID)})
			pooltest.NoError(t, err)
		}
	}
	w.bounds = w.together()
	return w
}

// someRole and someMember are of any project, as likely as not a foreign one.
func (w *escalation) someRole(project int64) int64 {
	roles, err := w.Store.Read(w.Ctx).Roles(store.AllProjects, project)
	pooltest.NoError(w.t, err)
	if r, ok := pooltest.Pick(w.rt, roles); ok {
		return r.ID
	}
	return 1
}

func (w *escalation) someMember(project int64) int64 {
	members, err := w.Store.Read(w.Ctx).Members(store.AllProjects, project, store.Page{Limit: 50})
	pooltest.NoError(w.t, err)
	if m, ok := pooltest.Pick(w.rt, members); ok {
		return m.ID
	}
	return 1
}

// edit is one attempt of somebody at something.
func (w *escalation) edit(maker models.User) error {
	a, p := w.Actor(w.t, maker), rapid.SampledFrom(w.projects).Draw(w.rt, "project").ID
	other := rapid.SampledFrom(w.people).Draw(w.rt, "other")
	mine := a.Grants[p].Permissions
	kind := rapid.IntRange(0, 12).Draw(w.rt, "kind")
	if kind > 7 {
		return w.request(a, p, kind)
	}
	switch kind {
	case 0:
		return pooltest.Error(w.CreateRole(w.Ctx, a, p, w.input(mine)))
	case 1, 2:
		return pooltest.Error(w.UpdateRole(w.Ctx, a, p, w.someRole(p), w.input(mine)))
	case 3:
		return w.DeleteRole(w.Ctx, a, p, w.someRole(p))
	case 4:
		return pooltest.Error(w.AddMember(w.Ctx, a, p, projects.MemberInput{Email: other.Email, RoleID: w.someRole(p)}))
	case 5, 6:
		return pooltest.Error(w.UpdateMember(w.Ctx, a, p, w.someMember(p), projects.MemberInput{RoleID: w.someRole(p)}))
	default:
		return w.RemoveMember(w.Ctx, a, p, w.someMember(p))
	}
}

// request asks for something, decides what was asked, or tries what is for
// administrators alone.
func (w *escalation) request(a policies.Actor, p int64, kind int) error {
	in := w.input(a.Grants[p].Permissions)
	role := models.Requested{Role: &models.RoleSpec{ProjectID: p, Name: in.Name, Permission: in.Permission, Permissions: in.Permissions, Limit: in.Limit, AssignToRequester: true}}
	switch kind {
	case 8, 9:
		asked := role
		if kind == 9 {
			asked = models.Requested{Join: &models.JoinSpec{ProjectID: p}}
		}
		v, err := w.Submit(w.Ctx, a, requests.RequestInput{Requested: asked, Reason: "please"})
		if err == nil {
			w.asked = append(w.asked, v.ID)
		}
		return err
	case 10, 11:
		id, ok := pooltest.Pick(w.rt, w.asked)
		if !ok {
			return models.NotFound("request")
		}
		with := models.Requested{}
		if v, err := w.Get(w.Ctx, w.Root, id); err == nil && v.Requested.Join != nil {
			with.Join = &models.JoinSpec{RoleID: w.someRole(v.Requested.Join.ProjectID)}
		}
		return pooltest.Error(w.Decide(w.Ctx, a, id, requests.DecisionInput{Decision: "approve", Requested: with}))
	default:
		_, err := w.accounts.UpdateUser(w.Ctx, a, a.User.ID, policies.UserChange{Name: "me", Admin: true, Auditor: rapid.Bool().Draw(w.rt, "auditor")})
		if err == nil {
			w.rt.Fatalf("%s has become an administrator", a.User.Email)
		}
		return err
	}
}

func (w *escalation) step(rt *rapid.T) {
	w.rt = rt
	maker := rapid.SampledFrom(w.people).Draw(rt, "maker")
	before := w.rights(maker)
	err := w.edit(maker)
	switch models.KindOf(err) {
	case models.KindInternal, models.KindUnavailable, models.KindUnauthenticated:
		if err != nil {
			rt.Fatalf("%v", err)
		}
	}
	if err == nil {
		w.edits++
	}
	for project, set := range w.rights(maker) {
		if more := set.Without(before[project]); more != 0 {
			rt.Fatalf("%s has gained %s in project %d by their own edit", maker.Email, more, project)
		}
	}
	for project, set := range w.together() {
		if more := set.Without(w.bounds[project]); more != 0 {
			rt.Fatalf("together they have gained %s in project %d", more, project)
		}
	}
}

// No sequence of permitted edits by people who are no administrators raises
// the rights of who makes them. Those who plot together get from each other
// what one of them had: in no project does the union of their rights grow.
func TestNobodyRaisesTheirOwnRights(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		h := newExample(t, o)
		access, err := policies.NewAccess()
		pooltest.NoError(t, err)
		accounts := policies.NewAccounts(o.Store, access)
		runs, edits := 0, 0
		rapid.Check(t, func(rt *rapid.T) {
			if runs++; runs > 100 { // as many as there is time for
				return
			}
			w := newEscalation(t, rt, h, accounts, runs)
			rt.Repeat(map[string]func(*rapid.T){"edit": w.step})
			edits += w.edits
		})
		if n := min(runs, 100); edits < 2*n {
			t.Errorf("only %d edits in %d runs were permitted", edits, n)
		}
	})
}

// Who lacks a right is told which, and that nothing has changed.
func TestRefusalsNameTheMissingRights(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		h := newExample(t, o)
		p := h.Vision.ID
		owner := o.NewRole(t, p, "owner", models.PermissionOwner, pooltest.Cores(10))
		chief, chiefUser := o.NewMember(t, owner)
		boss := h.Actor(t, h.Boss)
		missing := "project:describe"
		custom := projects.RoleInput{Name: "steward", Permission: models.PermissionCustom, Permissions: []string{"project:describe"}, Limit: pooltest.Cores(1).Input()}
		stranger := o.NewPerson(t)
		for name, c := range map[string]struct {
			err   error
			field string
		}{
			"create":  {pooltest.Error(h.CreateRole(h.Ctx, boss, p, custom)), "permission"},
			"raise":   {pooltest.Error(h.UpdateRole(h.Ctx, boss, p, h.Engineer.ID, custom)), "permission"},
			"lower":   {pooltest.Error(h.UpdateRole(h.Ctx, boss, p, owner.ID, projects.RoleInput{Name: "x", Permission: models.PermissionViewer, Limit: pooltest.Cores(10).Input()})), "permission"},
			"delete":  {h.DeleteRole(h.Ctx, boss, p, owner.ID), "permission"},
			"add":     {pooltest.Error(h.AddMember(h.Ctx, boss, p, projects.MemberInput{Email: stranger.Email, RoleID: owner.ID})), "role_id"},
			"promote": {pooltest.Error(h.UpdateMember(h.Ctx, boss, p, h.AnnMember.ID, projects.MemberInput{RoleID: owner.ID})), "role_id"},
			"myself":  {pooltest.Error(h.UpdateMember(h.Ctx, boss, p, h.BossMember.ID, projects.MemberInput{RoleID: owner.ID})), "role_id"},
			"demote":  {pooltest.Error(h.UpdateMember(h.Ctx, boss, p, chief.ID, projects.MemberInput{RoleID: h.Engineer.ID})), "role_id"},
			"remove":  {h.RemoveMember(h.Ctx, boss, p, chief.ID), "role_id"},
		} {
			t.Log(name)
			pooltest.WantError(t, c.err, models.KindForbidden, c.field, missing)
		}
		v := h.ask(t, h.Ann, models.Requested{Role: &models.RoleSpec{ProjectID: p, Name: "mine", Permission: models.PermissionOwner, Limit: pooltest.Cores(1).Input(), AssignToRequester: true}})
		_, err := h.approve(t, boss, v.ID, models.Requested{})
		pooltest.WantError(t, err, models.KindForbidden, "role.permission", missing)
		if _, err := h.approve(t, h.Actor(t, chiefUser), v.ID, models.Requested{}); err != nil {
			t.Error(err)
		}
	})
}
