package policies_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	"pgregory.net/rapid"

	"weir/models"
	"weir/policies"
)

// plainModel is casbin's own model of roles with domains: one enforcer with all
// rules and memberships.
const plainModel = `
[request_definition]
r = sub, dom, obj, act
[policy_definition]
p = sub, dom, obj, act
[role_definition]
g = _, _, _
[policy_effect]
e = some(where (p.eft == allow))
[matchers]
m = (g(r.sub, p.sub, r.dom) || g(r.sub, p.sub, "*")) && (p.dom == "*" || r.dom == p.dom) && (p.obj == "*" || r.obj == p.obj) && (p.act == "*" || r.act == p.act)
`

// accessTables is the content of our tables: projects, roles and members.
type accessTables struct {
	roles   map[int64]models.Permissions // by role
	project map[int64]int64              // of a role
	members map[int64]map[int64]int64    // role by project, by person
	people  map[int64]*models.User       // by id
}

func (w accessTables) actor(person int64) policies.Actor {
	a := policies.Actor{User: *w.people[person], Grants: map[int64]policies.Grant{}}
	for project, role := range w.members[person] {
		a.Grants[project] = policies.Grant{Role: role, Permissions: w.roles[role]}
	}
	return a
}

// plain returns casbin's plain enforcer with these tables.
func (w accessTables) plain(t testingT) *casbin.Enforcer {
	t.Helper()
	m, err := model.NewModelFromString(plainModel)
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		t.Fatal(err)
	}
	add := func(_ bool, err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	for line := range strings.Lines(policies.AccessRules()) {
		f := strings.Split(strings.TrimSpace(line), ", ")
		add(e.AddPolicy(f[1], f[2], f[3], f[4]))
	}
	for role, permissions := range w.roles {
		for _, name := range permissions.Names() {
			obj, act, _ := strings.Cut(name, ":")
			add(e.AddPolicy(sub("role", role), id(w.project[role]), obj, act))
		}
	}
	for person, u := range w.people {
		add(e.AddGroupingPolicy(sub("person", person), "user", "*"))
		if u.Admin {
			add(e.AddGroupingPolicy(sub("person", person), "administrator", "*"))
		}
		if u.Auditor {
			add(e.AddGroupingPolicy(sub("person", person), "auditor", "*"))
		}
		for project, role := range w.members[person] {
			add(e.AddGroupingPolicy(sub("person", person), sub("role", role), id(project)))
		}
	}
	return e
}

type testingT interface {
	Helper()
	Fatal(args ...any)
}

func id(n int64) string               { return strconv.FormatInt(n, 10) }
func sub(kind string, n int64) string { return kind + ":" + id(n) }

// rights are all rights, and some invalid ones.
var rights = append(append(policies.Rights(true), policies.Rights(false)...), "role:read", "member:*", "*:write", "project:", ":", "workspace:open")

// The decisions equal those of casbin's plain enforcer, for actors that were read
// before or after a change, and with a small cache.
func TestDecisionsAreCasbins(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, err := policies.NewAccess()
		if err != nil {
			t.Fatal(err)
		}
		projects, people := rapid.Int64Range(1, 5).Draw(t, "projects"), rapid.Int64Range(1, 4).Draw(t, "people")
		most := rapid.IntRange(1, 6).Draw(t, "most decisions")
		a.SetMaxDecisions(most)
		w := randomTables(t, projects, people)
		type reading struct {
			actor policies.Actor
			plain *casbin.Enforcer
		}
		var old []reading
		for range rapid.IntRange(1, 6).Draw(t, "rounds") {
			plain := w.plain(t)
			for range 12 {
				person := rapid.Int64Range(1, people).Draw(t, "person")
				r := reading{w.actor(person), plain}
				if len(old) > 0 && rapid.Bool().Draw(t, "read before") {
					r = rapid.SampledFrom(old).Draw(t, "reading")
				} else {
					old = append(old, r)
				}
				ask(t, a, r.plain, r.actor, rapid.Int64Range(0, projects+1).Draw(t, "project"), rapid.SampledFrom(rights).Draw(t, "right"))
			}
			if n := a.CachedDecisions(); n > most {
				t.Fatalf("%d decisions are cached", n)
			}
			w.change(t)
		}
	})
}

func ask(t *rapid.T, a *policies.Access, plain *casbin.Enforcer, actor policies.Actor, project int64, right string) {
	t.Helper()
	obj, act, _ := strings.Cut(right, ":")
	want, err := plain.Enforce(sub("person", actor.User.ID), id(project), obj, act)
	if err != nil {
		t.Fatal(err)
	}
	if got := a.May(actor, project, policies.Right(right)); got != want {
		t.Fatalf("%+v may %s in %d: %t, casbin says %t", actor.Grants, right, project, got, want)
	}
}

func randomTables(t *rapid.T, projects, people int64) accessTables {
	w := accessTables{roles: map[int64]models.Permissions{}, project: map[int64]int64{}, members: map[int64]map[int64]int64{}, people: map[int64]*models.User{}}
	role := int64(0)
	for p := range projects {
		for range rapid.IntRange(1, 3).Draw(t, "roles") {
			role++
			w.roles[role], w.project[role] = drawSet(t), p+1
		}
	}
	for n := range people {
		w.people[n+1] = &models.User{ID: n + 1, Admin: rapid.IntRange(0, 9).Draw(t, "admin") == 0, Auditor: rapid.IntRange(0, 5).Draw(t, "auditor") == 0}
		w.members[n+1] = map[int64]int64{}
	}
	for range 2 * people {
		w.move(t)
	}
	return w
}

func drawSet(t *rapid.T) models.Permissions {
	return models.Permissions(rapid.Uint32Range(0, uint32(models.AllPermissions)).Draw(t, "permissions")) | models.ProjectRead
}

// move adds, changes or removes a membership.
func (w accessTables) move(t *rapid.T) {
	person := rapid.Int64Range(1, int64(len(w.people))).Draw(t, "who")
	role := rapid.Int64Range(1, int64(len(w.roles))).Draw(t, "role")
	if w.members[person][w.project[role]] == role {
		delete(w.members[person], w.project[role])
		return
	}
	w.members[person][w.project[role]] = role
}

func (w accessTables) change(t *rapid.T) {
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		u := w.people[rapid.Int64Range(1, int64(len(w.people))).Draw(t, "whose")]
		u.Auditor = !u.Auditor
	case 1:
		w.move(t)
	default:
		w.roles[rapid.Int64Range(1, int64(len(w.roles))).Draw(t, "changed")] = drawSet(t)
	}
}

// largeTables is 10 000 rules over 200 projects: ten roles in each with five
// permissions, and a member in each role.
func largeTables() (accessTables, []policies.Actor) {
	w := accessTables{roles: map[int64]models.Permissions{}, project: map[int64]int64{}, members: map[int64]map[int64]int64{}, people: map[int64]*models.User{}}
	var actors []policies.Actor
	for project := int64(1); project <= 200; project++ {
		for n := range int64(10) {
			role := project*10 + n
			w.roles[role], w.project[role] = models.ProjectRead|models.WorkspaceRead|models.WorkspaceLaunch|models.RoleWrite|models.MemberWrite, project
			w.people[role] = &models.User{ID: role}
			w.members[role] = map[int64]int64{project: role}
			actors = append(actors, w.actor(role))
		}
	}
	return w, actors
}

// Cached decisions do not allocate.
func TestCachedDecisionsAllocateNothing(t *testing.T) {
	a := access(t)
	_, actors := largeTables()
	for _, right := range []policies.Right{policies.RoleWrite, policies.WorkspaceStop, policies.PoolRead} {
		for _, who := range actors {
			a.May(who, who.User.ID/10, right)
		}
		i := 0
		if n := testing.AllocsPerRun(1000, func() {
			who := actors[i*7%len(actors)]
			i++
			a.May(who, who.User.ID/10, right)
		}); n != 0 {
			t.Errorf("%s: %v allocations", right, n)
		}
	}
}

// BenchmarkDecision compares, with 10 000 rules over 200 projects, cached and
// uncached decisions, decisions after a change of the role, and casbin's plain
// enforcer with all the rules.
func BenchmarkDecision(b *testing.B) {
	w, actors := largeTables()
	each := func(name string, do func(who policies.Actor, project int64) bool) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				who := actors[i*7919%len(actors)]
				if !do(who, who.User.ID/10) {
					b.Fatal("refused")
				}
			}
		})
	}
	a := access(b)
	for _, who := range actors {
		a.May(who, who.User.ID/10, policies.RoleWrite)
	}
	each("cached", func(who policies.Actor, project int64) bool { return a.May(who, project, policies.RoleWrite) })
	each("uncached", func(who policies.Actor, project int64) bool {
		a.ClearDecisions()
		return a.May(who, project, policies.RoleWrite)
	})
	asked := 0
	each("changed-role", func(who policies.Actor, project int64) bool {
		asked++
		was := who.Grants[project]
		if asked/len(actors)%2 == 0 { // other than at the last time
			was.Permissions |= models.WorkspaceStop
		}
		who.Grants = map[int64]policies.Grant{project: was}
		return a.May(who, project, policies.RoleWrite)
	})
	plain := w.plain(b)
	each("plain-casbin", func(who policies.Actor, project int64) bool {
		ok, err := plain.Enforce(fmt.Sprint("person:", who.User.ID), id(project), "role", "write")
		return ok && err == nil
	})
}
