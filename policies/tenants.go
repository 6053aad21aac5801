package policies

import (
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"

	"weir/models"
)

// maxTenants is how many projects' enforcers are kept; the least recently
// used go first. One takes some ten kilobytes.
const maxTenants = 1024

// tenants are the projects that were asked about lately, each with an
// enforcer that has the rules of its roles alone.
//
// Nothing tells a tenant that a role was changed, and nothing need: who asks
// brings the role's permissions as they were just read from the tables, for
// this request, or within the transaction of this change. A role whose
// projected permissions are others than those is projected anew before the
// question is answered, and its verdicts are forgotten. So a verdict always
// is about what was read, on every server, and a revocation holds as soon as
// it is committed. Connections that were let in before it are ended by
// [models.Queries.Revoke] before the revoking call returns.
type tenants struct {
	mu  sync.RWMutex
	all map[int64]*tenant
	now atomic.Uint64 // goes up with every tenant that comes
	max int           // how many are kept
}

// tenant is the rules of one project's roles.
type tenant struct {
	used atomic.Uint64 // of tenants.now

	mu       sync.RWMutex
	domain   string
	enforcer *casbin.Enforcer
	roles    map[int64]projection
}

// projection is one role's rules as the enforcer has them.
type projection struct {
	permissions models.Permissions
	verdicts    map[question]bool
}

type question struct{ obj, act string }

// of finds the tenant of a project, or makes room for it.
func (ts *tenants) of(project int64, blank model.Model) (*tenant, error) {
	ts.mu.RLock()
	t := ts.all[project]
	ts.mu.RUnlock()
	if t != nil {
		if now := ts.now.Load(); t.used.Load() != now {
			t.used.Store(now)
		}
		return t, nil
	}
	ts.mu.Lock()
	defer ts.mu.Unlock()
	if t := ts.all[project]; t != nil {
		return t, nil
	}
	e, err := casbin.NewEnforcer(blank.Copy())
	if err != nil {
		return nil, err
	}
	t = &tenant{domain: strconv.FormatInt(project, 10), enforcer: e, roles: map[int64]projection{}}
	t.used.Store(ts.now.Add(1))
	if len(ts.all) >= ts.max {
		ts.drop()
	}
	ts.all[project] = t
	return t, nil
}

// drop forgets the tenant that was not used for longest.
func (ts *tenants) drop() {
	var oldest int64
	least := uint64(1<<64 - 1)
	for project, t := range ts.all {
		if used := t.used.Load(); used < least {
			oldest, least = project, used
		}
	}
	delete(ts.all, oldest)
}

// roleMay asks the rules of a role in its project.
func (a *Access) roleMay(project int64, grant Grant, obj, act string) bool {
	t, err := a.tenants.of(project, a.blank)
	if err != nil {
		return refuseBroken(false, err, obj, act)
	}
	asked := question{obj, act}
	t.mu.RLock()
	role, known := t.roles[grant.Role]
	verdict, decided := role.verdicts[asked]
	t.mu.RUnlock()
	if known && decided && role.permissions == grant.Permissions {
		return verdict
	}
	_, verdict, err = t.decide(grant, asked)
	return refuseBroken(verdict, err, obj, act)
}

// decide asks casbin, with the role's rules as they are now, and keeps the
// verdict. It tells the rule that permits.
func (t *tenant) decide(grant Grant, asked question) (rule []string, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	role, known := t.roles[grant.Role]
	if !known || role.permissions != grant.Permissions {
		if role, err = t.project(grant); err != nil {
			return nil, false, err
		}
	}
	if ok, rule, err = t.enforcer.EnforceEx(subject(grant.Role), t.domain, asked.obj, asked.act); err == nil {
		keep(role.verdicts, asked, ok)
	}
	return rule, ok, err
}

// project replaces a role's rules.
func (t *tenant) project(grant Grant) (projection, error) {
	if len(t.roles) >= maxVerdicts { // most of which were deleted
		t.enforcer.ClearPolicy()
		clear(t.roles)
	}
	delete(t.roles, grant.Role)
	sub := subject(grant.Role)
	if _, err := t.enforcer.RemoveFilteredPolicy(0, sub); err != nil {
		return projection{}, err
	}
	var rules [][]string
	for _, name := range grant.Permissions.Names() {
		obj, act, _ := strings.Cut(name, ":")
		rules = append(rules, []string{sub, t.domain, obj, act})
	}
	if len(rules) > 0 {
		if _, err := t.enforcer.AddPolicies(rules); err != nil {
			return projection{}, err
		}
	}
	role := projection{grant.Permissions, map[question]bool{}}
	t.roles[grant.Role] = role
	return role, nil
}

func subject(role int64) string { return "role:" + strconv.FormatInt(role, 10) }

// keep remembers a verdict, in bounded space.
func keep[K comparable](verdicts map[K]bool, asked K, verdict bool) {
	if len(verdicts) >= maxVerdicts {
		clear(verdicts)
	}
	verdicts[asked] = verdict
}

// refuseBroken is the verdict, which is no where a rule cannot be evaluated.
func refuseBroken(verdict bool, err error, obj, act string) bool {
	if err != nil {
		slog.Error("a rule of access cannot be evaluated; the answer is no", "obj", obj, "act", act, "err", err)
	}
	return err == nil && verdict
}
