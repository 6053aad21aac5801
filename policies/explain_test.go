package policies_test

import (
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// projectFixture is a project with a member in every standard role, and one in a
// custom role.
type projectFixture struct {
	*fixture
	project models.Project
	people  map[string]models.User
	places  map[string]models.Member
}

func newProjectFixture(t *testing.T, d *fixture, name string) *projectFixture {
	t.Helper()
	p := &projectFixture{fixture: d, people: map[string]models.User{}, places: map[string]models.Member{}}
	now := d.store.Now()
	storetest.InTx(t, d.store, func(q *store.Queries) error {
		p.project = models.Project{Name: name, StartsAt: now, Priority: 50, Version: 1, CreatedAt: now}
		return q.CreateProject(&p.project)
	})
	for _, word := range append([]string{models.PermissionCustom}, models.StandardPermissions...) {
		u := d.add(t, word+"@"+name+".org", false)
		storetest.InTx(t, d.store, func(q *store.Queries) error {
			r := models.Role{ProjectID: p.project.ID, Name: "the " + word, Permission: word, Version: 1, CreatedAt: now}
			if word == models.PermissionCustom {
				r.Permissions = models.MemberWrite
			}
			if err := q.CreateRole(&r); err != nil {
				return err
			}
			m := models.Member{ProjectID: p.project.ID, UserID: u.ID, RoleID: r.ID, JoinedAt: now, Version: 1, CreatedAt: now}
			p.people[word] = u
			err := q.CreateMember(&m)
			p.places[word] = m
			return err
		})
	}
	return p
}

func (p *projectFixture) explain(t *testing.T, by models.User, in policies.AccessQuery) (policies.Explanation, error) {
	t.Helper()
	return p.Explain(p.ctx, p.load(t, by), in)
}

func steps(e policies.Explanation) string {
	var all []string
	for _, s := range e.Steps {
		all = append(all, s.Text.String())
	}
	return strings.Join(all, " | ")
}

// Explanations match the decisions, for every actor and right.
func TestExplanationsAreTheDecisions(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		a := access(t)
		p := newProjectFixture(t, d, "vision")
		p.people["root"], p.people["stranger"] = d.root.User, d.add(t, "eve@example.org", false)
		auditor := d.add(t, "audrey@example.org", false)
		auditor, err := d.UpdateUser(d.ctx, d.root, auditor.ID, policies.UserChange{Name: "Audrey", Auditor: true})
		if err != nil || !auditor.Auditor {
			t.Fatal(err)
		}
		p.people["auditor"] = auditor
		for name, u := range p.people {
			for _, project := range []int64{policies.Platform, p.project.ID} {
				for _, right := range policies.Rights(project != policies.Platform) {
					obj, act, _ := strings.Cut(right, ":")
					e, err := p.explain(t, d.root.User, policies.AccessQuery{UserID: u.ID, ProjectID: project, Object: obj, Act: act})
					actor := d.load(t, u)
					want := a.May(actor, project, policies.Right(right)) && (right != "workspace:launch" || actor.MemberOf(project))
					if err != nil || e.Allowed != want || len(e.Steps) < 3 {
						t.Errorf("%s may %s in %d: %t (%s), want %t; %v", name, right, project, e.Allowed, steps(e), want, err)
					}
					if last := e.Steps[len(e.Steps)-1]; want != (last.Effect == policies.Allows) && right != "workspace:launch" {
						t.Errorf("%s may %s: the last step says %s", name, right, last.Effect)
					}
				}
			}
		}
	})
}

func TestStepsOfAnExplanation(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		p := newProjectFixture(t, d, "vision")
		ask := func(who, right string) policies.Explanation {
			t.Helper()
			obj, act, _ := strings.Cut(right, ":")
			e, err := p.explain(t, d.root.User, policies.AccessQuery{Email: p.people[who].Email, Project: "vision", Object: obj, Act: act})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		says := func(e policies.Explanation, decision bool, parts ...string) {
			t.Helper()
			for _, part := range parts {
				if e.Allowed != decision || !strings.Contains(steps(e), part) {
					t.Errorf("%t: %s does not say %q", e.Allowed, steps(e), part)
				}
			}
		}
		e := ask("member", "member:write")
		says(e, false, "Is not a platform administrator or an auditor.", "Is a member of the project vision.", "Has the role the member", "Missing permission: member:write.", "the owner", "the custom")
		if e.Missing != "member:write" || len(e.Roles) != 3 || e.Rule != nil {
			t.Errorf("%+v", e)
		}
		e = ask("custom", "member:write")
		says(e, true, "with the permissions member:write, project:read", "Allowed by the rule “role:", "member, write”")
		if len(e.Rule) != 4 || !strings.HasPrefix(e.Rule[0], "role:") {
			t.Errorf("%+v", e)
		}
		says(ask("viewer", "workspace:launch"), false, "within its period of use", "Missing permission: workspace:launch")
		says(ask("member", "workspace:launch"), true, "within its period of use")
		says(ask("manager", "project:write"), false, "Only a platform administrator can do it.")

		late := d.store.Now().Add(-time.Second)
		change := func(who string, edit func(*models.Member)) {
			storetest.InTx(t, d.store, func(q *store.Queries) error {
				m := p.places[who]
				edit(&m)
				return q.UpdateMember(&m)
			})
		}
		change("viewer", func(m *models.Member) { m.Until = &late })
		says(ask("viewer", "project:read"), false, "Was a member of the project vision until")
		change("manager", func(m *models.Member) { m.RemovedAt = &late })
		says(ask("manager", "role:write"), false, "Was removed from the project vision on")
		storetest.InTx(t, d.store, func(q *store.Queries) error {
			p.project.StartsAt, p.project.EndsAt = late.Add(-time.Hour), &late
			return q.UpdateProject(&p.project)
		})
		says(ask("member", "workspace:launch"), false, "period of use ended on")
		if _, err := d.UpdateUser(d.ctx, d.root, p.people["owner"].ID, policies.UserChange{Name: "O", Disabled: true}); err != nil {
			t.Fatal(err)
		}
		says(ask("owner", "role:write"), false, "is disabled and has no access")
	})
}

// Users and projects that an actor may not query do not exist.
func TestWhoMayQueryExplanations(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		p, other := newProjectFixture(t, d, "vision"), newProjectFixture(t, d, "secret")
		in, out := p.project.ID, other.project.ID
		for _, c := range []struct {
			by, about models.User
			project   int64
			kind      models.Kind // empty: answered
		}{
			{p.people["member"], p.people["member"], in, ""},
			{p.people["member"], p.people["member"], 0, ""},
			{p.people["member"], p.people["viewer"], in, models.KindNotFound},
			{p.people["member"], p.people["member"], out, models.KindNotFound},
			{p.people["manager"], p.people["member"], in, ""},
			{p.people["custom"], p.people["owner"], in, ""},
			{p.people["manager"], p.people["member"], 0, models.KindNotFound},
			{p.people["manager"], other.people["member"], in, models.KindNotFound},
			{p.people["manager"], other.people["member"], out, models.KindNotFound},
			{p.people["manager"], models.User{ID: 9999}, in, models.KindNotFound},
			{p.people["manager"], p.people["member"], 9999, models.KindNotFound},
			{d.root.User, p.people["member"], 0, ""},
			{d.root.User, other.people["member"], in, ""},
		} {
			query := policies.AccessQuery{UserID: c.about.ID, ProjectID: c.project, Object: "project", Act: "read"}
			_, err := p.explain(t, c.by, query)
			if (err == nil) != (c.kind == "") || err != nil && models.KindOf(err) != c.kind {
				t.Errorf("%s about %s in %d: %v", c.by.Email, c.about.Email, c.project, err)
			}
		}
		_, err := d.Explain(d.ctx, policies.Actor{}, policies.AccessQuery{Object: "pool", Act: "read"})
		want(t, err, models.KindUnauthenticated)
		for _, right := range []string{"", "role", "role:read", "pool:read", "*:*", "role:write'"} {
			obj, act, _ := strings.Cut(right, ":")
			_, err := p.explain(t, d.root.User, policies.AccessQuery{ProjectID: in, Object: obj, Act: act})
			want(t, err, models.KindInvalid)
		}
	})
}

// The error does not reveal whether an address or a project's name exists.
func TestExplanationsRevealNoAccounts(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		p, other := newProjectFixture(t, d, "vision"), newProjectFixture(t, d, "secret")
		stranger := d.add(t, "eve@example.org", false)
		for _, by := range []models.User{stranger, p.people["member"], p.people["manager"]} {
			messages := map[string]bool{}
			for _, email := range []string{other.people["member"].Email, "nobody@example.org"} {
				for _, project := range []string{"", "secret", "nosuch", "vision"} {
					_, err := p.explain(t, by, policies.AccessQuery{Email: email, Project: project, Object: "role", Act: "write"})
					want(t, err, models.KindNotFound)
					messages[err.Error()] = true
				}
			}
			if len(messages) != 1 {
				t.Errorf("%s is told apart: %v", by.Email, messages)
			}
			messages = map[string]bool{}
			for _, project := range []string{"secret", "nosuch"} {
				_, err := p.explain(t, by, policies.AccessQuery{Email: by.Email, Project: project, Object: "role", Act: "write"})
				want(t, err, models.KindNotFound)
				messages[err.Error()] = true
			}
			if len(messages) != 1 {
				t.Errorf("of themselves, too: %v", messages)
			}
		}
		for missing, query := range map[string]policies.AccessQuery{
			"account": {Email: "nobody@example.org", Project: "vision"}, "project": {Email: stranger.Email, Project: "nosuch"}} {
			if _, err := p.explain(t, d.root.User, query); err == nil || err.Error() != models.NotFound(missing).Error() {
				t.Errorf("an administrator is not told that the %s is missing: %v", missing, err)
			}
		}
	})
}

// Members whose membership has ended learn that, but nothing else of the
// project; removed members learn nothing.
func TestExplanationsForFormerMembers(t *testing.T) {
	withRoot(t, func(t *testing.T, d *fixture) {
		p := newProjectFixture(t, d, "vision")
		past := d.store.Now().Add(-time.Second)
		for _, who := range []string{"viewer", "member"} {
			storetest.InTx(t, d.store, func(q *store.Queries) error {
				m := p.places[who]
				if m.Until = &past; who == "viewer" {
					m.RemovedAt = &past
				}
				return q.UpdateMember(&m)
			})
		}
		query := policies.AccessQuery{Project: "vision", Object: "role", Act: "write"}
		_, err := p.explain(t, p.people["viewer"], query)
		want(t, err, models.KindNotFound)
		e, err := p.explain(t, p.people["member"], query)
		if got := steps(e); err != nil || !strings.Contains(got, "Was a member of the project vision until") || strings.Contains(got, "the owner") || len(e.Roles) != 0 || e.Missing != "role:write" {
			t.Errorf("%s, %v, %v", got, e.Roles, err)
		}
		if e, err := p.explain(t, p.people["manager"], policies.AccessQuery{UserID: p.people["member"].ID, Project: "vision", Object: "role", Act: "write"}); err != nil || len(e.Roles) != 2 {
			t.Errorf("the manager reads %s, %v", steps(e), err)
		}
	})
}
