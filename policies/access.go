package policies

import (
	_ "embed"
	"strings"
	"sync"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/model"
	"github.com/casbin/casbin/v2/persist"

	"weir/models"
)

//go:embed access.conf
var accessModel string

//go:embed access.csv
var accessRules string

// Platform is the domain of what belongs to no project.
const Platform int64 = 0

// Access answers whether an actor may do something, by casbin's rules with
// the project as the domain. Two kinds of rules answer together:
//
// Rules that are the same in every project belong to a standing: a platform
// administrator's, an auditor's, a signed-in user's, an owner's. They are in
// access.csv, and never change while Weir runs.
//
// Rules of a project belong to its roles, and are projected from our tables:
// nothing that a person typed becomes one. Each project is a tenant with a
// small enforcer of its own, so that a verdict costs the same however many
// projects there are. See [tenants] for why a verdict is never stale.
type Access struct {
	blank   model.Model // without rules
	tenants tenants

	mu        sync.RWMutex
	platform  *casbin.Enforcer
	standings map[standingQuestion]bool // its verdicts
}

// standing is what an actor is, apart from roles. The bits are those of
// standingNames.
type standing uint8

const (
	isAdministrator standing = 1 << iota
	isAuditor
	isUser
	isOwner  // of the thing; of what belongs to a project only while one is its member
	isRunner // an owner who may run workspaces there still
)

var standingNames = []string{"administrator", "auditor", "user", "owner", "runner"}

type standingQuestion struct {
	standing standing
	obj, act string
}

// maxVerdicts bounds how many verdicts are kept in one place; there are far
// fewer as long as only our own words are asked about.
const maxVerdicts = 2048

// NewAccess loads the rules of standings.
func NewAccess() (*Access, error) {
	m, err := model.NewModelFromString(accessModel)
	if err != nil {
		return nil, err
	}
	a := &Access{blank: m, standings: map[standingQuestion]bool{}}
	a.tenants.all, a.tenants.max = map[int64]*tenant{}, maxTenants
	fixed := m.Copy()
	for line := range strings.Lines(accessRules) {
		if err := persist.LoadPolicyLine(strings.TrimSpace(line), fixed); err != nil {
			return nil, err
		}
	}
	a.platform, err = casbin.NewEnforcer(fixed)
	return a, err
}

// standingOf is what the actor is in a question about a thing of the user
// with id owner, 0 when nobody's.
func standingOf(actor *Actor, owner, project int64) (s standing) {
	if actor.User.Admin || actor.System != "" {
		s |= isAdministrator
	}
	if actor.User.Auditor {
		s |= isAuditor
	}
	if actor.Signed() {
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
		s |= isRunner
	}
	return s
}

// May tells whether the actor may do act to an obj of the project.
func (a *Access) May(actor Actor, project int64, obj, act string) bool {
	return a.may(&actor, 0, project, obj, act)
}

// MayOwned is May for a thing that belongs to the user with id owner.
func (a *Access) MayOwned(actor Actor, owner, project int64, obj, act string) bool {
	return a.may(&actor, owner, project, obj, act)
}

func (a *Access) may(actor *Actor, owner, project int64, obj, act string) bool {
	if a.standingMay(standingQuestion{standingOf(actor, owner, project), obj, act}) {
		return true
	}
	grant, member := actor.Grants[project]
	return member && project != Platform && a.roleMay(project, grant, obj, act)
}

func (a *Access) standingMay(asked standingQuestion) bool {
	if asked.standing == 0 {
		return false
	}
	a.mu.RLock()
	verdict, known := a.standings[asked]
	a.mu.RUnlock()
	if known {
		return verdict
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_, verdict, err := standingRule(a.platform, asked)
	if err == nil {
		keep(a.standings, asked, verdict)
	}
	return refuseBroken(verdict, err, asked.obj, asked.act)
}

// standingRule finds the rule of access.csv that permits what is asked.
func standingRule(e *casbin.Enforcer, asked standingQuestion) (rule []string, ok bool, err error) {
	for i, name := range standingNames {
		if asked.standing&(1<<i) == 0 {
			continue
		}
		if ok, rule, err = e.EnforceEx(name, "*", asked.obj, asked.act); ok || err != nil {
			return rule, ok, err
		}
	}
	return nil, false, nil
}

// Check is nil when the actor may do act to an obj of the project. Nobody is
// unauthenticated; who may not even see the project is told that it does not
// exist.
func (a *Access) Check(actor Actor, project int64, obj, act string) error {
	switch {
	case !actor.Signed():
		return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Sign in first.")}
	case a.May(actor, project, obj, act):
		return nil
	case project != Platform && !a.May(actor, project, "project", "read"):
		return models.NotFound("project")
	default:
		return models.Forbidden("Your role does not permit this. A platform administrator or a manager of the project can do it.")
	}
}
