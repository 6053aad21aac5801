package policies

import (
	_ "embed"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/casbin/casbin/v2/model"
	"github.com/casbin/casbin/v2/persist"

	"weir/models"
	"weir/models/store"
)

//go:embed access.conf
var accessModel string

//go:embed access.csv
var accessRules string

// Platform is the domain of objects without a project.
const Platform int64 = 0

// Access decides what an actor may do, by casbin's rules with the project as the
// domain. There are two kinds of rules:
//
// Rules that are the same in every project have a fixed subject: administrator,
// auditor, user, owner, launcher, service. They are in access.csv.
//
// Rules of a project have a role as their subject. They are projected from our
// tables, never from text that a user typed (roleRule).
type Access struct {
	// Log gets the rules that cannot be evaluated. Set it before use.
	Log *slog.Logger

	decider decider
	fixed   map[string][]rule // of access.csv, by subject

	mu        sync.RWMutex
	decisions map[query]bool // cached
	max       int            // of them
}

// subjects is the set of an actor's fixed subjects. The bits are in the order of
// subjectNames.
type subjects uint8

const (
	isAdministrator subjects = 1 << iota
	isAuditor
	isUser
	isOwner    // of the object; in a project only as a member
	isLauncher // an owner who may launch workspaces in the project
	isService  // a service account, which is not a user
)

var subjectNames = []string{"administrator", "auditor", "user", "owner", "launcher", "service"}

// NewAccess loads the rules of access.csv.
func NewAccess() (*Access, error) {
	m, err := model.NewModelFromString(accessModel)
	if err != nil {
		return nil, err
	}
	a := &Access{Log: slog.Default(), fixed: map[string][]rule{}, decisions: map[query]bool{}, max: maxDecisions}
	for line := range strings.Lines(accessRules) {
		if err := persist.LoadPolicyLine(strings.TrimSpace(line), m); err != nil {
			return nil, err
		}
	}
	for _, words := range m["p"]["p"].Policy {
		one := rule(words) // LoadPolicyLine has checked their number
		a.fixed[one[0]] = append(a.fixed[one[0]], one)
	}
	a.decider, err = newDecider(m)
	return a, err
}

// subjectsOf returns the actor's fixed subjects for an object of the user with id
// owner; 0 for an object without one.
func subjectsOf(actor *Actor, owner, project int64) (s subjects) {
	if actor.User.Admin || actor.System != "" {
		s |= isAdministrator
	}
	if actor.User.Auditor {
		s |= isAuditor
	}
	switch {
	case actor.User.IsService():
		s |= isService
	case actor.SignedIn():
		s |= isUser
	}
	if owner == 0 || owner != actor.User.ID {
		return s
	}
	grant, member := actor.Grants[project]
	if project == Platform || member {
		s |= isOwner
	}
	if project == Platform || grant.Permissions.Contains(models.WorkspaceLaunch) {
		s |= isLauncher
	}
	return s
}

// May reports whether the actor has a right in the project.
func (a *Access) May(actor Actor, project int64, right Right) bool {
	return a.may(&actor, 0, project, right)
}

// MayOwned is May for an object that belongs to the user with id owner.
func (a *Access) MayOwned(actor Actor, owner, project int64, right Right) bool {
	return a.may(&actor, owner, project, right)
}

// Visible is what the actor may see of objects that belong to users: the actor's own, and
// those of others in projects in which the actor has the right.
func (a *Access) Visible(actor Actor, right Right) store.Visible {
	v := store.Visible{Owner: actor.User.ID}
	for project := range actor.Grants {
		if !a.May(actor, project, right) {
			v.HiddenProjects = append(v.HiddenProjects, project)
		}
	}
	return v
}

func (a *Access) may(actor *Actor, owner, project int64, right Right) bool {
	return actor.hasScope(right) && a.rulesAllow(actor, owner, project, right)
}

// rulesAllow is may without the limits of the actor's access token.
func (a *Access) rulesAllow(actor *Actor, owner, project int64, right Right) bool {
	s := subjectsOf(actor, owner, project)
	if a.decide(query{subjects: s, right: right}, func() (rule, bool, error) { return a.fixedRule(s, right) }) {
		return true
	}
	grant, member := actor.Grants[project]
	return member && project != Platform &&
		a.decide(query{permissions: grant.Permissions, right: right}, func() (rule, bool, error) { return a.roleRule(project, grant, right) })
}

// Check returns an error unless the actor has a right in the project. For actors
// who may not see the project it does not exist.
func (a *Access) Check(actor Actor, project int64, right Right) error {
	return a.CheckOwned(actor, 0, project, right)
}

// CheckOwned is Check for an object that belongs to the user with id owner.
func (a *Access) CheckOwned(actor Actor, owner, project int64, right Right) error {
	switch {
	case !actor.SignedIn():
		return unauthenticated(nil)
	case a.rulesAllow(&actor, owner, project, right):
		return actor.CheckScope(right)
	case project != Platform && !a.May(actor, project, ProjectRead):
		return models.NotFound("project")
	default:
		return models.Forbidden("Your role does not allow this. Contact a project manager or a platform administrator.")
	}
}

// maxDecisions bounds the cache of decisions. There are some forty rights, and roles mostly
// have the permissions of others.
const maxDecisions = 1 << 14

// query is what a decision depends on: the fixed subjects of an actor, or the permissions of a
// role.
type query struct {
	subjects    subjects
	permissions models.Permissions
	right       Right
}

// decide answers a query. Decisions are cached, and never stale: the query has the role's
// permissions as they were just read from the tables, so that a revocation is effective as soon
// as it is committed. Connections that were admitted before are closed by
// [store.Queries.Revoke] before the revoking call returns.
func (a *Access) decide(q query, find func() (rule, bool, error)) bool {
	a.mu.RLock()
	decision, cached := a.decisions[q]
	a.mu.RUnlock()
	if cached {
		return decision
	}
	_, decision, err := find()
	if err != nil {
		a.Log.Error("an access rule cannot be evaluated; access is denied", "right", q.right, "err", err)
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.decisions) >= a.max {
		clear(a.decisions)
	}
	a.decisions[q] = decision
	return decision
}

// fixedRule finds the rule of access.csv that permits subjects a right.
func (a *Access) fixedRule(s subjects, right Right) (permits rule, ok bool, err error) {
	object, act := right.split()
	for i, name := range subjectNames {
		if s&(1<<i) == 0 {
			continue
		}
		if permits, ok, err = a.decider.first(rule{name, "*", object, act}, a.fixed[name]); ok || err != nil {
			break
		}
	}
	return permits, ok, err
}

// roleRule finds the rule of a role that permits a right in its project.
func (a *Access) roleRule(project int64, grant Grant, right Right) (permits rule, ok bool, err error) {
	object, act := right.split()
	subject, domain := "role:"+strconv.FormatInt(grant.Role, 10), strconv.FormatInt(project, 10)
	var rules []rule
	for _, name := range grant.Permissions.Names() {
		if o, does := Right(name).split(); o == object {
			rules = append(rules, rule{subject, domain, o, does})
		}
	}
	return a.decider.first(rule{subject, domain, object, act}, rules)
}
