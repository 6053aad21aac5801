package policies

import (
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"

	"weir/models"
)

// maxEnforcers is the size of the cache of enforcers, one for each project. The
// least recently used is evicted first. One takes some ten kilobytes.
const maxEnforcers = 1024

// enforcerCache caches the enforcers of projects, each with the rules of its roles.
//
// The cache needs no invalidation: every query carries the role's permissions as
// they were just read from the tables. When they differ from those in the enforcer,
// the role's rules are replaced and its cached decisions are dropped. So decisions
// are never stale, on any server, and a revocation is effective as soon as it is
// committed. Connections that were admitted before are closed by
// [store.Queries.Revoke] before the revoking call returns.
type enforcerCache struct {
	mu  sync.RWMutex
	all map[int64]*projectEnforcer
	now atomic.Uint64 // logical clock of projectEnforcer.used
	max int
}

// projectEnforcer is the enforcer of one project.
type projectEnforcer struct {
	used atomic.Uint64 // of enforcerCache.now at the last use

	mu       sync.RWMutex
	domain   string
	enforcer *casbin.Enforcer
	roles    map[int64]roleRules
}

// roleRules is one role in the enforcer.
type roleRules struct {
	permissions models.Permissions
	decisions   map[Right]bool
}

// get returns the enforcer of a project, and creates it if needed.
func (c *enforcerCache) get(project int64, blank model.Model) (*projectEnforcer, error) {
	c.mu.RLock()
	t := c.all[project]
	c.mu.RUnlock()
	if t != nil {
		if now := c.now.Load(); t.used.Load() != now {
			t.used.Store(now)
		}
		return t, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.all[project]; t != nil {
		return t, nil
	}
	e, err := casbin.NewEnforcer(blank.Copy())
	if err != nil {
		return nil, err
	}
	t = &projectEnforcer{domain: strconv.FormatInt(project, 10), enforcer: e, roles: map[int64]roleRules{}}
	t.used.Store(c.now.Add(1))
	if len(c.all) >= c.max {
		c.evict()
	}
	c.all[project] = t
	return t, nil
}

// evict removes the least recently used enforcer.
func (c *enforcerCache) evict() {
	var oldest int64
	least := uint64(1<<64 - 1)
	for project, t := range c.all {
		if used := t.used.Load(); used < least {
			oldest, least = project, used
		}
	}
	delete(c.all, oldest)
}

// roleMay evaluates the rules of a role in its project.
func (a *Access) roleMay(project int64, grant Grant, right Right) bool {
	t, err := a.enforcers.get(project, a.blank)
	if err != nil {
		return a.denyOnError(false, err, right)
	}

	t.mu.RLock()
	role, known := t.roles[grant.Role]
	decision, cached := role.decisions[right]
	t.mu.RUnlock()
	if known && cached && role.permissions == grant.Permissions {
		return decision
	}
	_, decision, err = t.evaluate(grant, right)
	return a.denyOnError(decision, err, right)
}

// evaluate calls casbin with the role's present rules and caches the decision. It
// also returns the rule that permits.
func (t *projectEnforcer) evaluate(grant Grant, right Right) (rule []string, ok bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	role, known := t.roles[grant.Role]
	if !known || role.permissions != grant.Permissions {
		if role, err = t.setRole(grant); err != nil {
			return nil, false, err
		}
	}
	object, act := right.split()
	if ok, rule, err = t.enforcer.EnforceEx(roleSubject(grant.Role), t.domain, object, act); err == nil {
		cacheDecision(role.decisions, right, ok)
	}
	return rule, ok, err
}

// setRole replaces a role's rules in the enforcer.
func (t *projectEnforcer) setRole(grant Grant) (roleRules, error) {
	if len(t.roles) >= maxDecisions { // mostly of deleted roles
		t.enforcer.ClearPolicy()
		clear(t.roles)
	}
	delete(t.roles, grant.Role)
	sub := roleSubject(grant.Role)
	if _, err := t.enforcer.RemoveFilteredPolicy(0, sub); err != nil {
		return roleRules{}, err
	}
	var rules [][]string
	for _, name := range grant.Permissions.Names() {
		object, act := Right(name).split()
		rules = append(rules, []string{sub, t.domain, object, act})
	}
	if len(rules) > 0 {
		if _, err := t.enforcer.AddPolicies(rules); err != nil {
			return roleRules{}, err
		}
	}
	role := roleRules{grant.Permissions, map[Right]bool{}}
	t.roles[grant.Role] = role
	return role, nil
}

func roleSubject(role int64) string { return "role:" + strconv.FormatInt(role, 10) }

// cacheDecision stores a decision in bounded space.
func cacheDecision[K comparable](decisions map[K]bool, key K, decision bool) {
	if len(decisions) >= maxDecisions {
		clear(decisions)
	}
	decisions[key] = decision
}

// denyOnError denies when a rule cannot be evaluated.
func (a *Access) denyOnError(decision bool, err error, right Right) bool {
	if err != nil {
		a.Log.Error("an access rule cannot be evaluated; access is denied", "right", right, "err", err)
	}
	return err == nil && decision
}
