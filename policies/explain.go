package policies

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
)

// platformRights are the rights outside projects.
var platformRights = []Right{PoolRead, EnvironmentRead, EnvironmentWrite, ProjectRead, ProjectWrite, UserRead, UserWrite,
	ProviderWrite, DeviceWrite, CapacityRead, CapacityWrite, RequestCreate, RequestDecide, AuditRead, WebhookRead, WebhookWrite}

// Rights lists the names of the rights that can be explained: of a project, or of
// the platform.
func Rights(project bool) []string {
	if project {
		return append(models.PermissionNames(), string(ProjectWrite))
	}
	names := make([]string, len(platformRights))
	for i, right := range platformRights {
		names[i] = string(right)
	}
	return names
}

// AccessQuery selects a user, a project and a right to explain.
type AccessQuery struct {
	UserID    int64  `query:"user_id" minimum:"1" doc:"user ID; absent for the user with the given email, or yourself"`
	Email     string `query:"email" maxLength:"254" doc:"email address; alternative to user_id"`
	ProjectID int64  `query:"project_id" minimum:"1" doc:"project ID; absent for the project with the given name, or the platform"`
	Project   string `query:"project_name" maxLength:"100" doc:"exact project name; alternative to project_id"`
	Object    string `query:"object" maxLength:"40" doc:"resource type, such as role"`
	Act       string `query:"act" maxLength:"40" doc:"action, such as write"`
}

// Explanation is a decision with the steps that led to it.
type Explanation struct {
	Person  models.User
	Project models.Project // zero for the platform
	Object  string
	Act     string
	Allowed bool
	Steps   []Step
	Rule    []string // the casbin rule that permits it: subject, domain, object, act
	Missing string   // the permission that the role lacks
	Roles   []string // names of the project's roles that have it
}

// Step is one step of an explanation.
type Step struct {
	Text   models.Text
	Effect Effect
}

// Effect is what a step contributes to the decision.
type Effect string

// Effects of a step.
const (
	Allows  Effect = "yes"
	Denies  Effect = "no"
	Neutral Effect = "nothing"
)

// Explain returns whether a user has a right now, and why. Users may query their
// own rights, those who manage a project's members also these members', and
// administrators and auditors everybody's. Otherwise neither the user nor the
// project exists, in one error for both. An invalid right returns an Explanation
// with the user and the project.
func (a *Accounts) Explain(ctx context.Context, actor Actor, in AccessQuery) (e Explanation, err error) {
	if err := actor.CheckUser(); err != nil {
		return e, err
	}
	x := explainer{access: a.access, q: a.store.Read(ctx), actor: actor}
	if err := x.find(in); err != nil {
		return e, err
	}
	x.Object, x.Act, x.right = in.Object, in.Act, Right(in.Object+":"+in.Act)
	if !slices.Contains(Rights(x.Project.ID != 0), string(x.right)) {
		return x.Explanation, models.Invalid("right", "must be one of %s", strings.Join(Rights(x.Project.ID != 0), ", "))
	}
	err = x.explain()
	return x.Explanation, err
}

// explainer builds an Explanation.
type explainer struct {
	Explanation
	right   Right
	access  *Access
	q       *store.Queries
	actor   Actor
	subject Actor          // of the explanation
	member  *models.Member // of the project, present or former
	role    *models.Role
}

// find looks up the user and the project. Actors who may not see them get the same
// error whether they exist or not.
func (x *explainer) find(in AccessQuery) error {
	err := x.findPerson(in)
	if err == nil {
		err = x.findProject(in)
	}
	if err == nil {
		err = x.findMember()
	}
	switch self := x.Person.ID == x.actor.User.ID; {
	case err != nil && models.KindOf(err) != models.KindNotFound, x.access.May(x.actor, Platform, UserRead):
		return err
	case err == nil && x.canQuery(self):
		return nil
	case self:
		return models.NotFound("project")
	}
	return models.NotFound("account or project")
}

func (x *explainer) findPerson(in AccessQuery) (err error) {
	switch {
	case in.UserID != 0:
		x.Person, err = x.q.User(in.UserID)
	case strings.TrimSpace(in.Email) != "":
		x.Person, err = x.q.UserByEmail(strings.ToLower(strings.TrimSpace(in.Email)))
	default:
		x.Person, err = x.q.User(x.actor.User.ID)
	}
	return err
}

func (x *explainer) findProject(in AccessQuery) (err error) {
	switch {
	case in.ProjectID != 0:
		x.Project, err = x.q.Project(store.AllProjects, in.ProjectID)
	case strings.TrimSpace(in.Project) != "":
		x.Project, err = x.q.ProjectByName(store.AllProjects, strings.TrimSpace(in.Project))
	}
	return err
}

func (x *explainer) findMember() error {
	if x.Project.ID == 0 {
		return nil
	}
	m, err := x.q.Membership(x.Project.ID, x.Person.ID)
	if err != nil {
		return models.IgnoreNotFound(err)
	}
	x.member = &m
	if m.RoleID != 0 {
		r, err := x.q.Role(store.AllProjects, x.Project.ID, m.RoleID)
		if err != nil {
			return err
		}
		x.role = &r
	}
	return nil
}

// canQuery decides for actors who may not see every account. Former members get
// explanations of the project, unless they were removed.
func (x *explainer) canQuery(self bool) bool {
	switch {
	case self && x.Project.ID == Platform:
		return true
	case x.member == nil:
		return false
	case self:
		return x.member.RemovedAt == nil
	}
	return x.access.May(x.actor, x.Project.ID, MemberWrite)
}

func (x *explainer) addStep(effect Effect, text models.Text) {
	x.Steps = append(x.Steps, Step{text, effect})
}

// explain adds all steps and sets the decision.
func (x *explainer) explain() (err error) {
	if x.Person.Disabled {
		x.addStep(Denies, models.Say("The account %s is disabled and has no access.", x.Person.Email))
		return nil
	}
	x.addStep(Neutral, models.Say("The account %s is enabled.", x.Person.Email))
	if x.subject, err = actorOf(x.q, x.Person); err != nil {
		return err
	}
	x.platformRole()
	open := true
	if x.Project.ID != 0 {
		x.membership()
		open = x.period()
	}
	permits, err := x.rule()
	if err != nil {
		return err
	}
	x.Allowed = permits && open
	return nil
}

func (x *explainer) platformRole() {
	switch {
	case x.Person.Admin:
		x.addStep(Allows, models.Say("Is a platform administrator, who can do everything."))
	case x.Person.Auditor && x.Act == "read":
		x.addStep(Allows, models.Say("Is an auditor, who can read everything."))
	case x.Person.Auditor:
		x.addStep(Neutral, models.Say("Is an auditor, who can read everything but change nothing."))
	default:
		x.addStep(Neutral, models.Say("Is not a platform administrator or an auditor."))
	}
}

func (x *explainer) membership() {
	now := x.q.Now()
	switch m := x.member; {
	case m == nil:
		x.addStep(Neutral, models.Say("Is not a member of the project %s.", x.Project.Name))
		return
	case m.RemovedAt != nil:
		x.addStep(Neutral, models.Say("Was removed from the project %s on %s.", x.Project.Name, date(*m.RemovedAt)))
		return
	case !m.Active(now):
		x.addStep(Neutral, models.Say("Was a member of the project %s until %s.", x.Project.Name, date(models.LastDay(*m.Until))))
		return
	}
	x.addStep(Neutral, models.Say("Is a member of the project %s.", x.Project.Name))
	if x.role != nil {
		x.addStep(Neutral, models.Say("Has the role %s in the project, with the permissions %s.", x.role.Name, x.role.Permits().String()))
	}
}

// period reports whether the right can be used now: a launch needs a membership
// and the project's period of use.
func (x *explainer) period() bool {
	if x.right != WorkspaceLaunch {
		return true
	}
	now, p := x.q.Now(), x.Project
	switch {
	case !x.subject.MemberOf(p.ID):
		x.addStep(Denies, models.Say("Only members of a project can launch workspaces in it."))
	case p.Active(now):
		x.addStep(Neutral, models.Say("The project is within its period of use."))
		return true
	case now.Before(p.StartsAt):
		x.addStep(Denies, models.Say("The project's period of use starts on %s. Workspaces cannot be launched before then.", date(p.StartsAt)))
	default:
		last := date(models.LastDay(*p.EndsAt))
		x.addStep(Denies, models.Say("The project's period of use ended on %s. Workspaces can no longer be launched.", last))
	}
	return false
}

// rule finds the rule that permits it, or the missing permission.
func (x *explainer) rule() (bool, error) {
	rule, ok, err := x.access.rule(x.subject, x.Project.ID, x.right)
	if err != nil {
		return false, err
	}
	if ok {
		x.Rule = rule
		x.addStep(Allows, models.Say("Allowed by the rule “%s”.", strings.Join(rule, ", ")))
		return true, nil
	}
	permission := models.Permission(string(x.right))
	if x.Project.ID == 0 || permission == 0 {
		x.addStep(Denies, models.Say("No rule allows this. Only a platform administrator can do it."))
		return false, nil
	}
	x.Missing = permission.String()
	if !x.access.May(x.actor, x.Project.ID, ProjectRead) { // a former member
		x.addStep(Denies, models.Say("No rule allows this. Missing permission: %s.", x.Missing))
		return false, nil
	}
	roles, err := x.q.Roles(store.AllProjects, x.Project.ID)
	for _, r := range roles {
		if r.Permits().Contains(permission) {
			x.Roles = append(x.Roles, r.Name)
		}
	}
	if len(x.Roles) == 0 {
		x.addStep(Denies, models.Say("No rule allows this. Missing permission: %s. No role of the project has it.", x.Missing))
	} else {
		roles := strings.Join(x.Roles, ", ")
		x.addStep(Denies, models.Say("No rule allows this. Missing permission: %s. Roles of the project that have it: %s.", x.Missing, roles))
	}
	return false, err
}

// rule returns the casbin rule that permits a right.
func (a *Access) rule(actor Actor, project int64, right Right) (rule []string, ok bool, err error) {
	permits, ok, err := a.fixedRule(subjectsOf(&actor, 0, project), right)
	if !ok && err == nil && project != Platform && actor.MemberOf(project) {
		permits, ok, err = a.roleRule(project, actor.Grants[project], right)
	}
	if !ok || err != nil {
		return nil, false, err
	}
	return permits[:], true, nil
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }
