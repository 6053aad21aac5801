package policies_test

import (
	"strings"
	"testing"

	"weir/models"
	"weir/policies"
)

const (
	home    = int64(7) // the project of the roles
	foreign = int64(8)
	me      = int64(3)
)

// actors of every kind.
var actors = map[string]policies.Actor{
	"administrator": {User: models.User{ID: me, Admin: true}},
	"system":        policies.System("test"),
	"manager":       {User: models.User{ID: me}, Grants: in(home, models.PermissionManager)},
	"member":        {User: models.User{ID: me}, Grants: in(home, models.PermissionMember)},
	"owner":         {User: models.User{ID: me}, Grants: in(home, models.PermissionOwner)},
	"viewer":        {User: models.User{ID: me}, Grants: in(home, models.PermissionViewer)},
	"auditor":       {User: models.User{ID: me, Auditor: true}},
	"none":          {User: models.User{ID: me}, Grants: map[int64]policies.Grant{}},
	"nobody":        {},
}

func in(project int64, word string) map[int64]policies.Grant {
	return map[int64]policies.Grant{project: {Role: 1, Permissions: models.PermissionsOf(word, 0)}}
}

// permitted lists the actors with each right; others do not have it.
var permitted = map[policies.Right]string{
	"project:read":      "owner manager member viewer",
	"project:write":     "",
	"project:describe":  "owner",
	"role:write":        "owner manager",
	"member:write":      "owner manager",
	"workspace:read":    "owner manager member viewer",
	"workspace:launch":  "owner manager member",
	"workspace:stop":    "owner manager",
	"audit:read":        "owner manager",
	"storage:write":     "owner manager",
	"audit:write":       "",
	"workspace:open":    "",
	"pool:read":         "owner manager member viewer none",
	"environment:read":  "owner manager member viewer none",
	"environment:write": "",
	"device:write":      "",
	"user:read":         "",
	"user:write":        "",
	"request:create":    "owner manager member viewer none auditor",
	"request:decide":    "owner manager",
	"capacity:read":     "",
	"capacity:write":    "",
	"unknown:read":      "",
	"project:*":         "",
	"*:*":               "",
}

func access(t testing.TB) *policies.Access {
	t.Helper()
	a, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestDecisions(t *testing.T) {
	a := access(t)
	for right, who := range permitted {
		_, act, _ := strings.Cut(string(right), ":")
		for name, actor := range actors {
			above := name == "administrator" || name == "system" || name == "auditor" && act == "read"
			want := above || has(who, name)
			if got := a.May(actor, home, right); got != want {
				t.Errorf("%s may %s: %t, want %t", name, right, got, want)
			}
			everywhere := above || has(permitted[right], "none") && has(who, name)
			for _, elsewhere := range []int64{foreign, policies.Platform, -home} {
				if got := a.May(actor, elsewhere, right); got != everywhere {
					t.Errorf("%s of project %d may %s in %d: %t, want %t", name, home, right, elsewhere, got, everywhere)
				}
			}
		}
	}
}

// Owners have their rights only as members of the project.
func TestOwners(t *testing.T) {
	a := access(t)
	for _, c := range []struct {
		actor          string
		owner, project int64
		act            string
		want           bool
	}{
		{"member", me, home, "stop", true}, {"member", me, home, "open", true}, {"member", me, home, "write", false},
		{"member", me + 1, home, "stop", false}, {"member", me + 1, home, "open", false},
		{"member", me, foreign, "stop", false}, {"none", me, home, "stop", false}, {"none", me, home, "open", false},
		{"viewer", me, home, "stop", true}, {"viewer", me, home, "read", true}, {"viewer", me, home, "open", false},
		{"auditor", me + 1, home, "read", true}, {"auditor", me + 1, home, "open", false}, {"auditor", me + 1, home, "stop", false},
		{"manager", me + 1, home, "stop", true}, {"manager", me + 1, home, "open", false}, {"manager", me, home, "open", true},
		{"administrator", me + 1, foreign, "stop", true}, {"nobody", 0, home, "stop", false}, {"nobody", 0, home, "open", false},
	} {
		if got := a.MayOwned(actors[c.actor], c.owner, c.project, policies.Right("workspace:"+c.act)); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

func TestForeignProjectsDoNotExist(t *testing.T) {
	a := access(t)
	for _, c := range []struct {
		actor   string
		project int64
		right   policies.Right
		want    models.Kind
	}{
		{"nobody", home, policies.ProjectRead, models.KindUnauthenticated},
		{"nobody", policies.Platform, policies.PoolRead, models.KindUnauthenticated},
		{"none", home, policies.ProjectRead, models.KindNotFound},
		{"none", home, policies.RoleWrite, models.KindNotFound},
		{"manager", foreign, policies.RoleWrite, models.KindNotFound},
		{"member", home, policies.RoleWrite, models.KindForbidden},
		{"manager", home, policies.ProjectWrite, models.KindForbidden},
		{"none", policies.Platform, policies.UserRead, models.KindForbidden},
	} {
		err := a.Check(actors[c.actor], c.project, c.right)
		if err == nil || models.KindOf(err) != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if err := a.Check(actors["manager"], home, policies.RoleWrite); err != nil {
		t.Error(err)
	}
	// Subjects of rules are not names of projects or grants.
	odd := policies.Actor{User: models.User{ID: me}, Grants: in(home, "administrator")}
	if a.May(odd, home, policies.ProjectWrite) {
		t.Error("a grant named administrator makes one")
	}
}

func TestScopeOfAnActor(t *testing.T) {
	for name, actor := range actors {
		if got, want := actor.Scope().All, name == "administrator" || name == "system" || name == "auditor"; got != want {
			t.Errorf("%s sees everything: %t", name, got)
		}
		if got := actor.SignedIn(); got != (name != "nobody") {
			t.Errorf("%s is signed in: %t", name, got)
		}
	}
	if got := policies.System("queue").Label(); got != "weir queue" {
		t.Errorf("label %q", got)
	}
}

func BenchmarkMay(b *testing.B) {
	a := access(b)
	for b.Loop() {
		a.May(actors["member"], home, policies.WorkspaceLaunch)
	}
}
