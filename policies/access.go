package policies

import (
	_ "embed"
	"fmt"
	"log/slog"
	"strings"

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

// Access answers whether an actor may do something.
type Access struct{ enforcer *casbin.Enforcer }

// NewAccess loads the fixed rules.
func NewAccess() (*Access, error) {
	m, err := model.NewModelFromString(accessModel)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(accessRules) {
		if err := persist.LoadPolicyLine(strings.TrimSpace(line), m); err != nil {
			return nil, err
		}
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		return nil, err
	}
	e.AddFunction("holds", func(args ...any) (any, error) {
		r, ok := args[0].(request)
		if !ok {
			return false, fmt.Errorf("policies: %T is not a request", args[0])
		}
		return r.holds(args[1].(domain).project, args[2].(string)), nil
	})
	return &Access{enforcer: e}, nil
}

// request is an actor with what it owns of the thing in question.
type request struct {
	actor Actor
	owner bool
}

// domain is a project as casbin sees it: a bare number would reach holds as a
// float.
type domain struct{ project int64 }

func (r request) holds(project int64, role string) bool {
	switch role {
	case "administrator":
		return r.actor.User.Admin || r.actor.System != ""
	case "user":
		return r.actor.Signed()
	case "owner":
		// Of what belongs to a project only while one is its member.
		return r.owner && (project == Platform || r.actor.Grants[project] != "")
	default:
		return project != Platform && r.actor.Grants[project] == role
	}
}

// May tells whether the actor may do act to an obj of the project.
func (a *Access) May(actor Actor, project int64, obj, act string) bool {
	return a.may(request{actor: actor}, project, obj, act)
}

// MayOwned is May for a thing that belongs to the user with id owner.
func (a *Access) MayOwned(actor Actor, owner, project int64, obj, act string) bool {
	return a.may(request{actor: actor, owner: owner != 0 && owner == actor.User.ID}, project, obj, act)
}

func (a *Access) may(r request, project int64, obj, act string) bool {
	ok, err := a.enforcer.Enforce(r, domain{project}, obj, act)
	if err != nil {
		slog.Error("a rule of access cannot be evaluated; the answer is no", "obj", obj, "act", act, "err", err)
	}
	return err == nil && ok
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
