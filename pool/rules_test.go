package pool_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/modelstest"
	"weir/pool"
)

// reporter is what rapid's and testing's T have in common.
type reporter interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// keepsRules adds everything up by hand, from the rows alone, and holds it
// against rules 1 and 2.
func (o *office) keepsRules(t reporter, project int64) {
	t.Helper()
	q := o.store.Read(o.ctx)
	p, err1 := q.Project(models.Everything, project)
	members, err2 := q.Members(models.Everything, project, models.Page{Limit: 200})
	all, err3 := q.WorkspacesIn(models.HoldingStates...)
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatalf("%v, %v, %v", err1, err2, err3)
	}
	var promised, held models.Resources
	byMember := map[int64]models.Resources{}
	for _, w := range all {
		if w.ProjectID == project {
			held = held.Add(w.Demand.Resources())
			byMember[w.MemberID] = byMember[w.MemberID].Add(w.Demand.Resources())
		}
	}
	for _, m := range members {
		promised = promised.Add(m.Peak)
		if over := byMember[m.ID].Exceeding(m.Peak); len(over) > 0 {
			t.Errorf("rule 2: %s holds too much: %+v", m.UserEmail, over)
		}
	}
	if over := promised.Exceeding(p.Quota); len(over) > 0 {
		t.Errorf("rule 1: too much is promised: %+v", over)
	}
	if over := held.Exceeding(p.Quota); len(over) > 0 {
		t.Errorf("rule 2: the project holds too much: %+v", over)
	}
	v, err := o.Project(o.ctx, o.root, project)
	if err != nil || v.Promised != promised || v.Held != held {
		t.Errorf("the ledger says %+v and %+v, the rows %+v and %+v, %v", v.Promised, v.Held, promised, held, err)
	}
}

// keepsDevices adds up the open shares in SQL and holds them against rule 3.
func (o *office) keepsDevices(t reporter) {
	t.Helper()
	db, err := o.store.SQL()
	if err != nil {
		t.Fatalf("%v", err)
	}
	over, err := db.Query(`SELECT d.uuid, SUM(s.cores), SUM(s.memory_mib), COUNT(DISTINCT s.workspace_id), COUNT(DISTINCT s.project_id)
		FROM shares s JOIN devices d ON d.id = s.device_id WHERE s.until_at IS NULL GROUP BY d.id, d.uuid, d.memory_mib, d.sharing = 'exclusive', d.mixed
		HAVING SUM(s.cores) > 100 OR SUM(s.memory_mib) > d.memory_mib OR (d.sharing = 'exclusive' AND COUNT(*) > 1)
			OR (NOT d.mixed AND COUNT(DISTINCT s.project_id) > 1)`)
	if err != nil {
		t.Fatalf("%v", err)
	}
	defer over.Close()
	for over.Next() {
		var uuid string
		var cores, memory, holders, projects int64
		if err := over.Scan(&uuid, &cores, &memory, &holders, &projects); err != nil {
			t.Fatalf("%v", err)
		}
		t.Errorf("rules 3 and 4: %s has %d cores, %d MiB, %d holders, %d projects", uuid, cores, memory, holders, projects)
	}
	if err := over.Err(); err != nil {
		t.Fatalf("%v", err)
	}
}

// Whatever is asked, in whatever order, is done or refused, and the rules
// hold after every step.
func TestRulesHoldAfterEveryStep(t *testing.T) {
	each(t, func(t *testing.T, o *office) {
		o.environment(t)
		var emails []string
		for range 6 {
			emails = append(emails, o.person(t).Email)
		}
		runs := 0
		rapid.Check(t, func(rt *rapid.T) {
			runs++
			if runs > 15 { // as many as there is time for
				return
			}
			c := chaos{office: o, rt: rt, emails: emails, project: o.project(t, fmt.Sprintf("project %d", runs), amounts(rt, 100, 300)).ID}
			rt.Repeat(map[string]func(*rapid.T){
				"create role":   func(rt *rapid.T) { c.rt = rt; c.createRole() },
				"update role":   func(rt *rapid.T) { c.rt = rt; c.updateRole() },
				"add member":    func(rt *rapid.T) { c.rt = rt; c.addMember() },
				"update member": func(rt *rapid.T) { c.rt = rt; c.updateMember() },
				"remove member": func(rt *rapid.T) { c.rt = rt; c.removeMember() },
				"update quota":  func(rt *rapid.T) { c.rt = rt; c.updateQuota() },
				"launch":        func(rt *rapid.T) { c.rt = rt; c.launch() },
				"stop":          func(rt *rapid.T) { c.rt = rt; c.stop() },
				"":              func(rt *rapid.T) { o.keepsRules(rt, c.project) },
			})
		})
	})
}

// chaos does one random thing after another to a project.
type chaos struct {
	*office
	rt      *rapid.T
	emails  []string
	project int64
	roles   []models.Role
	members []models.Member
	running []models.Workspace
}

func amounts(rt *rapid.T, low, high int64) models.Resources {
	n := rapid.Int64Range(low, high)
	return models.Resources{GPUCores: n.Draw(rt, "cores"), GPUMemoryMiB: n.Draw(rt, "gpu memory"), CPUMilli: n.Draw(rt, "cpu")}
}

func pick[T any](rt *rapid.T, list []T) (one T, ok bool) {
	if len(list) == 0 {
		return one, false
	}
	return list[rapid.IntRange(0, len(list)-1).Draw(rt, "index")], true
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
	r, err := c.CreateRole(c.ctx, c.root, c.project, pool.RoleInput{Name: fmt.Sprintf("role %d", len(c.roles)), Permission: "member", Peak: amounts(c.rt, 0, 150)})
	if c.bears(err) {
		c.roles = append(c.roles, r)
	}
}

func (c *chaos) updateRole() {
	if r, ok := pick(c.rt, c.roles); ok {
		c.bears(second(c.UpdateRole(c.ctx, c.root, c.project, r.ID, pool.RoleInput{Name: r.Name, Permission: "member", Peak: amounts(c.rt, 0, 150)})))
	}
}

func (c *chaos) addMember() {
	r, ok := pick(c.rt, c.roles)
	if !ok {
		return
	}
	email, _ := pick(c.rt, c.emails)
	m, err := c.AddMember(c.ctx, c.root, c.project, pool.MemberInput{Email: email, RoleID: r.ID})
	if c.bears(err) {
		c.members = append(c.members, m)
	}
}

func (c *chaos) updateMember() {
	m, ok1 := pick(c.rt, c.members)
	if r, ok2 := pick(c.rt, c.roles); ok1 && ok2 {
		c.bears(second(c.UpdateMember(c.ctx, c.root, c.project, m.ID, pool.MemberInput{RoleID: r.ID})))
	}
}

func (c *chaos) removeMember() {
	if m, ok := pick(c.rt, c.members); ok {
		c.bears(c.RemoveMember(c.ctx, c.root, c.project, m.ID))
	}
}

func (c *chaos) updateQuota() {
	p, err := c.Project(c.ctx, c.root, c.project)
	if err != nil {
		c.rt.Fatalf("%v", err)
	}
	c.bears(second(c.UpdateProject(c.ctx, c.root, c.project, pool.ProjectInput{Name: p.Name, Quota: amounts(c.rt, 0, 400)})))
}

// launch takes what the ledger says is left, or does not.
func (c *chaos) launch() {
	m, ok := pick(c.rt, c.members)
	if !ok {
		return
	}
	a := amounts(c.rt, 1, 100)
	w := models.Workspace{ProjectID: c.project, MemberID: m.ID, UserID: m.UserID, EnvironmentID: 1, Name: fmt.Sprint(len(c.running)), State: models.StateRunning,
		Demand: models.Demand{GPUs: 1, Cores: a.GPUCores, GPUMemoryMiB: a.GPUMemoryMiB, CPUMilli: a.CPUMilli}, Version: 1, RequestedAt: c.store.Now()}
	err := c.store.InTx(c.ctx, func(q *models.Queries) error {
		p, err := q.LockProject(models.Everything, c.project)
		if err != nil {
			return err
		}
		room, err := c.Room(q, p, m.ID)
		if err != nil {
			return err
		}
		if len(w.Demand.Resources().Exceeding(room.Left())) > 0 {
			return models.NoCapacity("", "No room.")
		}
		return q.CreateWorkspace(&w, models.Say("Running."))
	})
	if c.bears(err) {
		c.running = append(c.running, w)
	}
}

func (c *chaos) stop() {
	w, ok := pick(c.rt, c.running)
	if !ok {
		return
	}
	w.State = models.StateStopped
	c.bears(c.store.InTx(c.ctx, func(q *models.Queries) error { return q.Transition(&w, models.StateRunning, models.Text{}) }))
}

// keepsPromises looks at rule 1 in one statement, so also while others write.
func (o *office) keepsPromises(t *testing.T) {
	t.Helper()
	db, err := o.store.SQL()
	if err != nil {
		t.Fatal(err)
	}
	var broken int
	if err := db.QueryRow(`SELECT COUNT(*) FROM projects p WHERE p.quota_gpu_cores < (SELECT COALESCE(SUM(r.peak_gpu_cores), 0)
		FROM members m JOIN roles r ON r.id = m.role_id WHERE m.project_id = p.id AND m.removed_at IS NULL)`).Scan(&broken); err != nil || broken > 0 {
		t.Errorf("rule 1 is broken in %d projects, %v", broken, err)
	}
}

// Promises are made at the same moment by adding members, giving them other
// roles and raising peaks; together they may not exceed the quota.
func TestConcurrentPromisesKeepRule1(t *testing.T) {
	const people = 32
	each(t, func(t *testing.T, o *office) {
		p := o.project(t, "vision", cores(1000))
		r, other := o.role(t, p.ID, "a", "member", cores(40)), o.role(t, p.ID, "b", "member", cores(60))
		var emails []string
		for range people {
			emails = append(emails, o.person(t).Email)
		}
		var kinds modelstest.Kinds
		modelstest.Together(people, func(i int) {
			m, err := o.AddMember(o.ctx, o.root, p.ID, pool.MemberInput{Email: emails[i], RoleID: r.ID})
			kinds.Add(err)
			switch {
			case err != nil:
				return
			case i%3 == 0:
				_, err = o.UpdateMember(o.ctx, o.root, p.ID, m.ID, pool.MemberInput{RoleID: other.ID})
			case i%3 == 1:
				_, err = o.UpdateRole(o.ctx, o.root, p.ID, other.ID, pool.RoleInput{Name: "b", Permission: "member", Peak: cores(int64(60 + i))})
			default:
				_, err = o.UpdateProject(o.ctx, o.root, p.ID, pool.ProjectInput{Name: "vision", Quota: cores(1000 - int64(i))})
			}
			if kind := models.KindOf(err); err != nil && kind != models.KindNoCapacity {
				t.Errorf("%v", err)
			}
			o.keepsPromises(t)
		})
		o.keepsRules(t, p.ID)
		members, err := o.store.Read(o.ctx).Members(models.Everything, p.ID, models.Page{Limit: 200})
		if err != nil || len(members) == 0 || len(members) == people {
			t.Errorf("%d of %d became members, %v: the quota was never short", len(members), people, err)
		}
		kinds.Want(t, len(members), models.KindNoCapacity, people-len(members))
	})
}
