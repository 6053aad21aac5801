package policies

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
)

// platformRights are what can be asked about where no project is named.
var platformRights = []string{"pool:read", "environment:read", "environment:write", "project:read", "project:write", "user:read", "user:write",
	"provider:write", "device:write", "promise:read", "promise:write", "request:ask", "request:decide", "audit:read", "webhook:read", "webhook:write"}

// Rights are the rights, as "object:act", that can be asked about: of a
// project, or of the platform.
func Rights(project bool) []string {
	if project {
		return append(models.PermissionNames(), "project:write")
	}
	return slices.Clone(platformRights)
}

// AccessQuery asks whether a person may do something.
type AccessQuery struct {
	UserID    int64  `query:"user" minimum:"1" doc:"who; absent: whose address is given, or yourself"`
	Email     string `query:"email" maxLength:"254" doc:"the person's address, instead of the number"`
	ProjectID int64  `query:"project" minimum:"1" doc:"in which project; absent: that of the given name, or none"`
	Project   string `query:"project_name" maxLength:"100" doc:"the project's exact name, instead of the number"`
	Object    string `query:"object" maxLength:"40" doc:"kind of thing, such as role"`
	Act       string `query:"act" maxLength:"40" doc:"what is to be done with it, such as write"`
}

// Explanation is a verdict with the steps that led to it.
type Explanation struct {
	Person  models.User
	Project models.Project // zero for the platform
	Object  string
	Act     string
	Verdict bool
	Steps   []Step
	Rule    []string // that permits it, as casbin has it: who, where, what, act
	Missing string   // the permission that the role lacks
	Roles   []string // of the project that have it, by name
}

// Step is one link of the chain.
type Step struct {
	Text models.Text
	Says Answer
}

// Answer is what a step says to the question: yes, no, or nothing by itself.
type Answer string

// Answers of a step.
const (
	SaysYes     Answer = "yes"
	SaysNo      Answer = "no"
	SaysNothing Answer = "nothing"
)

// Explain answers whether a person may do something now, and why. Everybody
// may ask about themselves, who may change a project's members about those of
// the project, administrators and auditors about anybody. To others neither
// the person nor the project is there, in the same words whichever it is. With
// a refusal of what is asked comes whom and where it is asked about.
func (a *Accounts) Explain(ctx context.Context, actor Actor, in AccessQuery) (e Explanation, err error) {
	if actor.User.ID == 0 {
		return e, signInAgain(nil)
	}
	x := inquiry{access: a.access, q: a.store.Read(ctx), asker: actor}
	if err := x.find(in); err != nil {
		return e, err
	}
	x.Object, x.Act = in.Object, in.Act
	if right := in.Object + ":" + in.Act; !slices.Contains(Rights(x.Project.ID != 0), right) {
		return x.Explanation, models.Invalid("right", "must be one of %s", strings.Join(Rights(x.Project.ID != 0), ", "))
	}
	err = x.answer()
	return x.Explanation, err
}

// inquiry is a question while it is answered.
type inquiry struct {
	Explanation
	access  *Access
	q       *models.Queries
	asker   Actor
	subject Actor
	place   *models.Member // in the project, present or not
	role    *models.Role
}

// find looks up who and where, as far as the asker may know of them. To who
// may not, it is all the same which of them is there.
func (x *inquiry) find(in AccessQuery) error {
	err := cmp.Or(x.findPerson(in), x.findProject(in))
	if err == nil {
		err = x.findPlace()
	}
	switch self := x.Person.ID == x.asker.User.ID; {
	case err != nil && models.KindOf(err) != models.KindNotFound, x.access.May(x.asker, Platform, "user", "read"):
		return err
	case err == nil && x.mayAsk(self):
		return nil
	case self:
		return models.NotFound("project")
	}
	return models.NotFound("account or project")
}

func (x *inquiry) findPerson(in AccessQuery) (err error) {
	switch {
	case in.UserID != 0:
		x.Person, err = x.q.User(in.UserID)
	case strings.TrimSpace(in.Email) != "":
		x.Person, err = x.q.UserByEmail(strings.ToLower(strings.TrimSpace(in.Email)))
	default:
		x.Person, err = x.q.User(x.asker.User.ID)
	}
	return err
}

func (x *inquiry) findProject(in AccessQuery) (err error) {
	switch {
	case in.ProjectID != 0:
		x.Project, err = x.q.Project(models.Everything, in.ProjectID)
	case strings.TrimSpace(in.Project) != "":
		x.Project, err = x.q.ProjectByName(models.Everything, strings.TrimSpace(in.Project))
	}
	return err
}

func (x *inquiry) findPlace() error {
	if x.Project.ID == 0 {
		return nil
	}
	m, err := x.q.Membership(x.Project.ID, x.Person.ID)
	if models.KindOf(err) == models.KindNotFound && err != nil {
		return nil
	}
	if err != nil {
		return err
	}
	x.place = &m
	if m.RoleID != 0 {
		r, err := x.q.Role(models.Everything, x.Project.ID, m.RoleID)
		if err != nil {
			return err
		}
		x.role = &r
	}
	return nil
}

// mayAsk is for who may not see every account. Of a project that one is in no
// more one is told why, but not when one was removed from it.
func (x *inquiry) mayAsk(self bool) bool {
	switch {
	case self && x.Project.ID == Platform:
		return true
	case x.place == nil:
		return false
	case self:
		return x.place.RemovedAt == nil
	}
	return x.access.May(x.asker, x.Project.ID, "member", "write")
}

func (x *inquiry) say(says Answer, text models.Text) {
	x.Steps = append(x.Steps, Step{text, says})
}

// answer goes along the chain.
func (x *inquiry) answer() (err error) {
	if x.Person.Disabled {
		x.say(SaysNo, models.Say("The account %s is disabled and can do nothing.", x.Person.Email))
		return nil
	}
	x.say(SaysNothing, models.Say("The account %s exists and is not disabled.", x.Person.Email))
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
	x.Verdict = permits && open
	return nil
}

func (x *inquiry) platformRole() {
	switch {
	case x.Person.Admin:
		x.say(SaysYes, models.Say("Is a platform administrator, who may do everything."))
	case x.Person.Auditor && x.Act == "read":
		x.say(SaysYes, models.Say("Is an auditor, who sees everything."))
	case x.Person.Auditor:
		x.say(SaysNothing, models.Say("Is an auditor, who sees everything; that changes nothing."))
	default:
		x.say(SaysNothing, models.Say("Is neither a platform administrator nor an auditor."))
	}
}

func (x *inquiry) membership() {
	now := x.q.Now()
	switch m := x.place; {
	case m == nil:
		x.say(SaysNothing, models.Say("Has no place in the project %s.", x.Project.Name))
		return
	case m.RemovedAt != nil:
		x.say(SaysNothing, models.Say("Was removed from the project %s on %s.", x.Project.Name, date(*m.RemovedAt)))
		return
	case !m.Active(now):
		x.say(SaysNothing, models.Say("Took part in the project %s until %s, which is over.", x.Project.Name, date(*m.Until)))
		return
	}
	x.say(SaysNothing, models.Say("Is a member of the project %s.", x.Project.Name))
	if x.role != nil {
		x.say(SaysNothing, models.Say("Has the role %s there, which permits: %s.", x.role.Name, x.role.Permits().String()))
	}
}

// period tells whether what is asked about can be done at this time at all:
// a launch needs a place in the project, and its period of use.
func (x *inquiry) period() bool {
	if x.Object != "workspace" || x.Act != "launch" {
		return true
	}
	now, p := x.q.Now(), x.Project
	switch {
	case !x.subject.MemberOf(p.ID):
		x.say(SaysNo, models.Say("A launch needs a place in the project, whoever launches."))
	case p.Active(now):
		x.say(SaysNothing, models.Say("Today lies within the project's period of use."))
		return true
	case now.Before(p.StartsAt):
		x.say(SaysNo, models.Say("The project's period of use begins on %s; nothing can be launched before.", date(p.StartsAt)))
	default:
		x.say(SaysNo, models.Say("The project's period of use ended on %s; nothing can be launched any more.", date(*p.EndsAt)))
	}
	return false
}

// rule finds the rule that permits it, or what is missing.
func (x *inquiry) rule() (bool, error) {
	rule, ok, err := x.access.rule(x.subject, x.Project.ID, x.Object, x.Act)
	if err != nil {
		return false, err
	}
	if ok {
		x.Rule = rule
		x.say(SaysYes, models.Say("The rule “%s” permits it.", strings.Join(rule, ", ")))
		return true, nil
	}
	permission := models.Permission(x.Object, x.Act)
	if x.Project.ID == 0 || permission == 0 {
		x.say(SaysNo, models.Say("No rule permits it: it takes a platform administrator."))
		return false, nil
	}
	x.Missing = permission.String()
	if !x.access.May(x.asker, x.Project.ID, "project", "read") { // whose own place is over
		x.say(SaysNo, models.Say("No rule permits it: %s is missing.", x.Missing))
		return false, nil
	}
	roles, err := x.q.Roles(models.Everything, x.Project.ID)
	for _, r := range roles {
		if r.Permits().Contains(permission) {
			x.Roles = append(x.Roles, r.Name)
		}
	}
	if len(x.Roles) == 0 {
		x.say(SaysNo, models.Say("No rule permits it: %s is missing, and no role of the project has it.", x.Missing))
	} else {
		x.say(SaysNo, models.Say("No rule permits it: %s is missing. These roles of the project have it: %s.", x.Missing, strings.Join(x.Roles, ", ")))
	}
	return false, err
}

// rule is the rule of casbin that permits what is asked.
func (a *Access) rule(actor Actor, project int64, obj, act string) (rule []string, ok bool, err error) {
	a.mu.Lock()
	rule, ok, err = standingRule(a.platform, standingQuestion{standingOf(&actor, 0, project), obj, act})
	a.mu.Unlock()
	if ok || err != nil || project == Platform || !actor.MemberOf(project) {
		return rule, ok, err
	}
	t, err := a.tenants.of(project, a.blank)
	if err != nil {
		return nil, false, err
	}
	return t.decide(actor.Grants[project], question{obj, act})
}

func date(t time.Time) string { return t.UTC().Format(time.DateOnly) }
