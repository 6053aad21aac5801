package projects_test

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/pooltest"
	"weir/pool/projects"
	"weir/pool/quota"
)

// Whatever is asked, in whatever order, is done or refused, and the rules
// hold after every step.
func TestRulesHoldAfterEveryStep(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.Environment(t)
		var emails []string
		for range 6 {
			emails = append(emails, o.NewPerson(t).Email)
		}
		runs := 0
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			if runs > 15 { // as many as there is time for
				return
			}
			c := chaos{world: o, rt: rt, emails: emails, project: o.NewProject(t, fmt.Sprintf("project %d", runs), pooltest.DrawResources(rt, 100, 300)).ID}
			rt.Repeat(map[string]func(*rapid.T){
				"create role":   func(rt *rapid.T) { c.rt = rt; c.createRole() },
				"update role":   func(rt *rapid.T) { c.rt = rt; c.updateRole() },
				"add member":    func(rt *rapid.T) { c.rt = rt; c.addMember() },
				"update member": func(rt *rapid.T) { c.rt = rt; c.updateMember() },
				"remove member": func(rt *rapid.T) { c.rt = rt; c.removeMember() },
				"update quota":  func(rt *rapid.T) { c.rt = rt; c.updateQuota() },
				"launch":        func(rt *rapid.T) { c.rt = rt; c.launch() },
				"stop":          func(rt *rapid.T) { c.rt = rt; c.stop() },
				"":              func(rt *rapid.T) { o.CheckRules(rt, c.project) },
			})
		})
	})
}

// chaos does one random thing after another to a project.
type chaos struct {
	*world
	rt      *rapid.T
	emails  []string
	project int64
	roles   []models.Role
	members []models.Member
	running []models.Workspace
}

// bears takes a refusal and fails on anything worse.
func (c *chaos) bears(err error) bool {
	switch models.KindOf(err) {
	case models.KindNoCapacity, models.KindConflict, models.KindNotFound:
	default:
		if err != nil {
			c.rt.Fatalf("%v", err)
		}
	}
	return err == nil
}

func (c *chaos) createRole() {
	r, err := c.CreateRole(c.Ctx, c.Root, c.project, projects.RoleInput{Name: fmt.Sprintf("role %d", len(c.roles)), Permission: "member", Limit: pooltest.DrawResources(c.rt, 0, 150).Input()})
	if c.bears(err) {
		c.roles = append(c.roles, r)
	}
}

func (c *chaos) updateRole() {
	if r, ok := pooltest.Pick(c.rt, c.roles); ok {
		c.bears(pooltest.Error(c.UpdateRole(c.Ctx, c.Root, c.project, r.ID, projects.RoleInput{Name: r.Name, Permission: "member", Limit: pooltest.DrawResources(c.rt, 0, 150).Input()})))
	}
}

func (c *chaos) addMember() {
	r, ok := pooltest.Pick(c.rt, c.roles)
	if !ok {
		return
	}
	email, _ := pooltest.Pick(c.rt, c.emails)
	m, err := c.AddMember(c.Ctx, c.Root, c.project, projects.MemberInput{Email: email, RoleID: r.ID})
	if c.bears(err) {
		c.members = append(c.members, m)
	}
}

func (c *chaos) updateMember() {
	m, ok1 := pooltest.Pick(c.rt, c.members)
	if r, ok2 := pooltest.Pick(c.rt, c.roles); ok1 && ok2 {
		c.bears(pooltest.Error(c.UpdateMember(c.Ctx, c.Root, c.project, m.ID, projects.MemberInput{RoleID: r.ID})))
	}
}

func (c *chaos) removeMember() {
	if m, ok := pooltest.Pick(c.rt, c.members); ok {
		c.bears(c.RemoveMember(c.Ctx, c.Root, c.project, m.ID))
	}
}

func (c *chaos) updateQuota() {
	p, err := c.Project(c.Ctx, c.Root, c.project)
	if err != nil {
		c.rt.Fatalf("%v", err)
	}
	c.bears(pooltest.Error(c.UpdateProject(c.Ctx, c.Root, c.project, projects.ProjectInput{Name: p.Name, Quota: pooltest.DrawResources(c.rt, 0, 400).Input()})))
}

// launch takes what the ledger says is left, or does not.
func (c *chaos) launch() {
	m, ok := pooltest.Pick(c.rt, c.members)
	if !ok {
		return
	}
	a := pooltest.DrawResources(c.rt, 1, 100)
	w := models.Workspace{ProjectID: c.project, MemberID: m.ID, UserID: m.UserID, EnvironmentID: 1, Name: fmt.Sprint(len(c.running)), State: models.StateRunning,
		Demand: models.Demand{GPUs: 1, Cores: a.GPUCores, GPUMemoryMiB: a.GPUMemoryMiB, CPUMilli: a.CPUMilli}, Version: 1, RequestedAt: c.Store.Now()}
	err := c.Store.InTx(c.Ctx, func(q *store.Queries) error {
		p, err := q.LockProject(store.AllProjects, c.project)
		if err != nil {
			return err
		}
		v, err1 := q.MemberView(store.AllProjects, p.ID, m.ID)
		inUse, err2 := q.InUseByMembers(p.ID)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		if use := quota.UseOf(p, m.ID, v.Limit, inUse); len(use.ExceededBy(w.Demand.Resources())) > 0 {
			return models.NoCapacity("", "Nothing remains.")
		}
		return q.CreateWorkspace(&w, models.Say("Running."))
	})
	if c.bears(err) {
		c.running = append(c.running, w)
	}
}

func (c *chaos) stop() {
	w, ok := pooltest.Pick(c.rt, c.running)
	if !ok {
		return
	}
	w.State = models.StateStopped
	c.bears(c.Store.InTx(c.Ctx, func(q *store.Queries) error { return q.Transition(&w, models.StateRunning, models.Text{}) }))
}

// keepsAllocations looks at rule 1 in one statement, so also while others write.
func (o *world) keepsAllocations(t *testing.T) {
	t.Helper()
	db, err := o.Store.SQL()
	if err != nil {
		t.Fatal(err)
	}
	var broken int
	if err := db.QueryRow(`SELECT COUNT(*) FROM projects p WHERE p.quota_gpu_cores < (SELECT COALESCE(SUM(r.limit_gpu_cores), 0)
		FROM members m JOIN roles r ON r.id = m.role_id WHERE m.project_id = p.id AND m.removed_at IS NULL)`).Scan(&broken); err != nil || broken > 0 {
		t.Errorf("rule 1 is broken in %d projects, %v", broken, err)
	}
}

// Capacity are made at the same moment by adding members, giving them other
// roles and raising peaks; together they may not exceed the quota.
func TestConcurrentPromisesKeepRule1(t *testing.T) {
	const people = 32
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(1000))
		r, other := o.NewRole(t, p.ID, "a", "member", pooltest.Cores(40)), o.NewRole(t, p.ID, "b", "member", pooltest.Cores(60))
		var emails []string
		for range people {
			emails = append(emails, o.NewPerson(t).Email)
		}
		var kinds storetest.ErrorCounts
		storetest.Concurrently(people, func(i int) {
			m, err := o.AddMember(o.Ctx, o.Root, p.ID, projects.MemberInput{Email: emails[i], RoleID: r.ID})
			kinds.Add(err)
			switch {
			case err != nil:
				return
			case i%3 == 0:
				_, err = o.UpdateMember(o.Ctx, o.Root, p.ID, m.ID, projects.MemberInput{RoleID: other.ID})
			case i%3 == 1:
				_, err = o.UpdateRole(o.Ctx, o.Root, p.ID, other.ID, projects.RoleInput{Name: "b", Permission: "member", Limit: pooltest.Cores(int64(60 + i)).Input()})
			default:
				_, err = o.UpdateProject(o.Ctx, o.Root, p.ID, projects.ProjectInput{Name: "vision", Quota: pooltest.Cores(1000 - int64(i)).Input()})
			}
			if kind := models.KindOf(err); err != nil && kind != models.KindNoCapacity {
				t.Errorf("%v", err)
			}
			o.keepsAllocations(t)
		})
		o.CheckRules(t, p.ID)
		members, err := o.Store.Read(o.Ctx).Members(store.AllProjects, p.ID, store.Page{Limit: 200})
		if err != nil || len(members) == 0 || len(members) == people {
			t.Errorf("%d of %d became members, %v: the quota was never short", len(members), people, err)
		}
		kinds.Want(t, len(members), models.KindNoCapacity, people-len(members))
	})
}
