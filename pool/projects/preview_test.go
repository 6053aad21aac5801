package projects_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// trial is a project with roles, members and what they hold, in which changes
// are previewed and then made.
type trial struct {
	*world
	t       *testing.T
	rt      *rapid.T
	project models.Project
	roles   []models.Role
	members []models.Member
	gone    []models.User // who were members
	boss    models.User   // a manager, who grants no owner's rights
	step    int
}

func newTrial(t *testing.T, rt *rapid.T, o *world, name string) *trial {
	r := &trial{world: o, t: t, rt: rt, project: o.NewProject(t, name, pooltest.DrawResources(rt, 50, 200))}
	_, r.boss = o.NewMember(t, o.NewRole(t, r.project.ID, "boss", "manager", models.Resources{}))
	for i := range 3 {
		permission := rapid.SampledFrom([]string{"member", "owner"}).Draw(rt, "permission")
		role, err := o.CreateRole(o.Ctx, o.Root, r.project.ID, projects.RoleInput{Name: fmt.Sprint("role ", i), Permission: permission, Limit: pooltest.DrawResources(rt, 0, 60).Input()})
		if err == nil {
			r.roles = append(r.roles, role)
		}
	}
	if len(r.roles) == 0 {
		r.roles = append(r.roles, o.NewRole(t, r.project.ID, "nothing", "member", models.Resources{}))
	}
	for range 3 {
		role, u := r.someRole(), o.NewPerson(t)
		m, err := o.AddMember(o.Ctx, o.Root, r.project.ID, projects.MemberInput{Email: u.Email, RoleID: role.ID})
		if err != nil {
			continue
		}
		r.members = append(r.members, m)
		if role.Limit.GPUCores > 0 {
			o.NewWorkspace(t, m, models.Demand{GPUs: 1, Cores: rapid.Int64Range(0, role.Limit.GPUCores).Draw(rt, "in_use")})
		}
	}
	return r
}

// someone may change roles and members, and is bound by what they may grant,
// or by nothing.
func (r *trial) someone() policies.Actor {
	if rapid.Bool().Draw(r.rt, "by the manager") {
		return r.Actor(r.t, r.boss)
	}
	return r.Root
}

func (r *trial) someRole() models.Role { return rapid.SampledFrom(r.roles).Draw(r.rt, "role") }

// previewed compares what a preview says with what becomes of the change.
func (r *trial) previewed(by policies.Actor, in projects.PreviewInput, write func() error) {
	v, err := r.Preview(r.Ctx, by, r.project.ID, in)
	if err != nil {
		r.rt.Fatalf("preview: %v", err)
	}
	made := write()
	if (v.Refused == nil) != (made == nil) {
		r.rt.Fatalf("the preview says %v, the change %v", v.Refused, made)
	}
	if made != nil {
		if made.Error() != v.Refused.Error() {
			r.rt.Fatalf("the preview says %v, the change %v", v.Refused, made)
		}
		return
	}
	p, err := r.Project(r.Ctx, r.Root, r.project.ID)
	if err != nil {
		r.rt.Fatal(err)
	}
	for i, a := range p.Allocated.Amounts() {
		if v.Rows[i].Value != a.Value || v.Rows[i].Quota != p.Quota.Amounts()[i].Value || v.Rows[i].Over {
			r.rt.Fatalf("the preview says %+v, then %d of %+v is allocated", v.Rows[i], a.Value, p.Quota)
		}
	}
}

func (r *trial) changeRole() {
	by, role, limit := r.someone(), r.someRole(), pooltest.DrawResources(r.rt, 0, 120)
	r.previewed(by, projects.PreviewInput{Role: &projects.RolePreview{RoleID: role.ID, Limit: limit.Input()}}, func() error {
		return pooltest.Error(r.UpdateRole(r.Ctx, by, r.project.ID, role.ID, projects.RoleInput{Name: role.Name, Permission: role.Permission, Limit: limit.Input()}))
	})
}

func (r *trial) newRole() {
	by, limit := r.someone(), pooltest.DrawResources(r.rt, -1, 250)
	r.step++
	r.previewed(by, projects.PreviewInput{Role: &projects.RolePreview{Limit: limit.Input()}}, func() error {
		role, err := r.CreateRole(r.Ctx, by, r.project.ID, projects.RoleInput{Name: fmt.Sprint("new ", r.step), Permission: "member", Limit: limit.Input()})
		if err == nil {
			r.roles = append(r.roles, role)
		}
		return err
	})
}

func (r *trial) add() {
	by, role, u := r.someone(), r.someRole(), r.NewPerson(r.t)
	if len(r.gone) > 0 && rapid.Bool().Draw(r.rt, "comes back") {
		u = rapid.SampledFrom(r.gone).Draw(r.rt, "who")
	}
	r.previewed(by, projects.PreviewInput{Member: &projects.MemberPreview{Email: u.Email, RoleID: role.ID}}, func() error {
		m, err := r.AddMember(r.Ctx, by, r.project.ID, projects.MemberInput{Email: u.Email, RoleID: role.ID})
		if err == nil {
			r.members = append(r.members, m)
		}
		return err
	})
}

func (r *trial) remove() {
	if len(r.members) == 0 {
		return
	}
	m := rapid.SampledFrom(r.members).Draw(r.rt, "leaver")
	if r.RemoveMember(r.Ctx, r.Root, r.project.ID, m.ID) != nil {
		return
	}
	u, err := r.Store.Read(r.Ctx).User(m.UserID)
	if err != nil {
		r.rt.Fatal(err)
	}
	r.gone = append(r.gone, u)
}

func (r *trial) move() {
	if len(r.members) == 0 {
		return
	}
	by, m, role := r.someone(), rapid.SampledFrom(r.members).Draw(r.rt, "member"), r.someRole()
	if _, err := r.Member(r.Ctx, r.Root, r.project.ID, m.ID); err != nil {
		return // gone
	}
	r.previewed(by, projects.PreviewInput{Member: &projects.MemberPreview{MemberID: m.ID, RoleID: role.ID}}, func() error {
		return pooltest.Error(r.UpdateMember(r.Ctx, by, r.project.ID, m.ID, projects.MemberInput{RoleID: role.ID}))
	})
}

func (r *trial) changeQuota() {
	quota := pooltest.DrawResources(r.rt, -1, 250)
	about := projects.PreviewInput{Quota: new(quota.Input())}
	in := projects.ProjectInput{Name: r.project.Name, Quota: quota.Input()}
	change := func() error { return pooltest.Error(r.UpdateProject(r.Ctx, r.Root, r.project.ID, in)) }
	v, err := r.Preview(r.Ctx, r.Root, r.project.ID, about)
	if err != nil {
		r.rt.Fatalf("preview: %v", err)
	}
	if v.Refused == nil && len(v.Beyond) > 0 {
		if err := change(); models.KindOf(err) != models.KindNoCapacity || !strings.Contains(err.Error(), v.Beyond[0].String()) {
			r.rt.Fatalf("the preview says %v, the change without a confirmation %v", v.Beyond, err)
		}
		in.Confirmation = pooltest.Confirmed
	}
	r.previewed(r.Root, about, change)
}

// A preview says that a change fits just when the change is made, refuses it
// in the same words, and reckons what is promised afterwards.
func TestPreviewsAndChangesAgree(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		n := 0
		rapid.Check(t, func(rt *rapid.T) {
			n++
			r := newTrial(t, rt, o, fmt.Sprint("project ", n))
			for range rapid.IntRange(1, 8).Draw(rt, "steps") {
				rapid.SampledFrom([]func(){r.changeRole, r.newRole, r.add, r.remove, r.move, r.changeQuota}).Draw(rt, "change")()
			}
			o.CheckRules(t, r.project.ID)
		})
	})
}

func TestPreviewTellsWhoAndHowMany(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(1000))
		r := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(80))
		var first models.Member
		for i := range 10 {
			if m, _ := o.NewMember(t, r); i == 0 {
				first = m
			}
		}
		o.NewWorkspace(t, first, models.Demand{GPUs: 1, Cores: 60})
		look := func(limit int64) projects.Preview {
			v, err := o.Preview(o.Ctx, o.Root, p.ID, projects.PreviewInput{Role: &projects.RolePreview{RoleID: r.ID, Limit: pooltest.Cores(limit).Input()}})
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		if v := look(90); v.Refused != nil || v.Members != 10 || v.Rows[0].Before != 800 || v.Rows[0].Value != 900 || v.Rows[0].Remaining() != 100 || v.Fits != 1 {
			t.Errorf("%+v", v)
		}
		if v := look(101); v.Refused == nil || !v.Rows[0].Over || v.Rows[0].Remaining() != -10 {
			t.Errorf("%+v", v)
		}
		v := look(50)
		if v.Refused == nil || len(v.OverLimit) != 1 || v.OverLimit[0].MemberID != first.ID || v.OverLimit[0].Excess[0].Value != 60 || !v.Rows[0].Over {
			t.Errorf("%+v", v)
		}
		if v := look(0); v.Fits != -1 {
			t.Errorf("no limit on members: %+v", v)
		}
	})
}

func TestPreviewIsForWhoMay(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p, other := o.NewProject(t, "vision", pooltest.Cores(100)), o.NewProject(t, "speech", pooltest.Cores(100))
		r, boss := o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10)), o.NewRole(t, p.ID, "lead", "manager", pooltest.Cores(10))
		foreign := o.NewRole(t, other.ID, "engineer", "member", pooltest.Cores(10))
		m, memberUser := o.NewMember(t, r)
		_, bossUser := o.NewMember(t, boss)
		member, manager, stranger := o.Actor(t, memberUser), o.Actor(t, bossUser), o.Actor(t, o.NewPerson(t))
		quota := pooltest.Cores(50)
		role, place := projects.PreviewInput{Role: &projects.RolePreview{Limit: pooltest.Cores(1).Input()}}, projects.PreviewInput{Member: &projects.MemberPreview{RoleID: r.ID}}
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, stranger, p.ID, role)), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, member, other.ID, role)), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, member, p.ID, place)), models.KindForbidden)
		for _, in := range []projects.PreviewInput{role, {Quota: new(quota.Input())}} {
			if _, err := o.Preview(o.Ctx, member, p.ID, in); err != nil {
				t.Error(err)
			}
		}
		if v, err := o.Preview(o.Ctx, manager, p.ID, place); err != nil || v.Refused != nil {
			t.Errorf("%+v, %v", v, err)
		}
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, o.Root, p.ID, projects.PreviewInput{})), models.KindInvalid, "exactly one")
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, o.Root, p.ID, projects.PreviewInput{Quota: new(quota.Input()), Role: role.Role})), models.KindInvalid, "exactly one")
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, o.Root, p.ID, projects.PreviewInput{Role: &projects.RolePreview{RoleID: foreign.ID}})), models.KindNotFound)
		pooltest.WantError(t, pooltest.Error(o.Preview(o.Ctx, o.Root, other.ID, projects.PreviewInput{Member: &projects.MemberPreview{MemberID: m.ID, RoleID: foreign.ID}})), models.KindNotFound)
		v, err := o.Preview(o.Ctx, o.Root, p.ID, projects.PreviewInput{Member: &projects.MemberPreview{Email: "nobody@example.org", RoleID: r.ID}})
		if err != nil || v.Refused == nil || v.Refused.Fields[0].Name != "email" {
			t.Errorf("%+v, %v", v, err)
		}
	})
}

// Who may change roles is told what they may not grant; who may not, or asks
// somebody else for it, whether the numbers fit.
func TestPreviewAsksWhoGrants(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(100))
		owner := o.NewRole(t, p.ID, "owner", "owner", pooltest.Cores(10))
		_, bossUser := o.NewMember(t, o.NewRole(t, p.ID, "lead", "manager", pooltest.Cores(10)))
		_, memberUser := o.NewMember(t, o.NewRole(t, p.ID, "engineer", "member", pooltest.Cores(10)))
		boss, member := o.Actor(t, bossUser), o.Actor(t, memberUser)
		in := projects.PreviewInput{Role: &projects.RolePreview{RoleID: owner.ID, Limit: pooltest.Cores(20).Input()}}
		v, err := o.Preview(o.Ctx, boss, p.ID, in)
		if err != nil || v.Refused == nil || v.Refused.Kind != models.KindForbidden {
			t.Errorf("%+v, %v", v.Refused, err)
		}
		asked := in
		asked.Requested = true
		for _, c := range []struct {
			by policies.Actor
			in projects.PreviewInput
		}{{o.Root, in}, {member, in}, {boss, asked}} {
			if v, err := o.Preview(o.Ctx, c.by, p.ID, c.in); err != nil || v.Refused != nil {
				t.Errorf("%s: %v, %v", c.by.Label(), v.Refused, err)
			}
		}
	})
}
