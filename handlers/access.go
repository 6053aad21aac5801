package handlers

import (
	"context"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
)

func (a *App) accessRoutes(p *echo.Group) {
	p.GET("/access", a.accessPage)
}

func (a rest) accessOperations(s section) {
	register(a, s, route{http.MethodGet, "/access", 200, "get-access",
		models.Say("Check access and explain the result; checks of other users require permission to manage the project's members, or the administrator or auditor role")}, a.getAccess, http.StatusNotFound)
}

// accessPage checks and explains a permission. Its address contains the whole query, so
// it can be shared.
func (a *App) accessPage(c echo.Context) error {
	ctx := c.Request().Context()
	f := &form{values: c.QueryParams()}
	in := f.accessQuery()
	e, err := a.Accounts.Explain(ctx, actorOf(ctx), in)
	err = f.with(err) // a number that cannot be read is nobody's
	v := web.AccessCheckView{Form: f.asSubmitted(), Rights: rights()}
	v.Form.Values["right"] = in.Object + ":" + in.Act
	status := http.StatusOK
	switch {
	case models.KindOf(err) == models.KindInvalid:
		if in.Object != "" {
			status, v.Form = http.StatusUnprocessableEntity, v.Form.Refuse(err)
		}
	case err != nil:
		return err
	default:
		v.AccessCheck = accessCheckOf(e)
	}
	v.Form.Values["email"], v.Form.Values["project_name"] = e.Person.Email, e.Project.Name
	return a.render(c, status, web.AccessCheckPage(v))
}

func (f *form) accessQuery() policies.AccessQuery {
	in := policies.AccessQuery{UserID: f.number("user_id"), Email: f.text("email"), ProjectID: f.number("project_id"),
		Project: f.text("project_name"), Object: f.text("object"), Act: f.text("act")}
	if right := f.text("right"); right != "" {
		in.Object, in.Act, _ = strings.Cut(right, ":")
	}
	return in
}

// rights lists the permissions that can be queried, those of projects first.
func rights() []string {
	list := policies.Rights(true)
	for _, right := range policies.Rights(false) {
		if right != "project:read" && right != "project:write" && right != "audit:read" && right != "request:decide" {
			list = append(list, right)
		}
	}
	return list
}

func accessCheckOf(e policies.Explanation) *web.AccessCheck {
	v := &web.AccessCheck{Person: e.Person.Name, Project: e.Project.Name, ProjectID: e.Project.ID,
		Right: e.Object + ":" + e.Act, May: e.Allowed}
	for _, s := range e.Steps {
		v.Steps = append(v.Steps, web.AccessCheckStep{Text: s.Text, Effect: string(s.Effect)})
	}
	return v
}

// AccessExplanation is the result of an access check, with its explanation.
type AccessExplanation struct {
	UserID    int64        `json:"user_id"`
	ProjectID *int64       `json:"project_id" doc:"project ID; null for the platform"`
	Object    string       `json:"object"`
	Act       string       `json:"act"`
	Allowed   bool         `json:"allowed"`
	Steps     []AccessStep `json:"steps" doc:"evaluation steps, in order"`
	Rule      []string     `json:"rule" doc:"matching policy rule: subject, domain, object, action"`
	Missing   string       `json:"missing,omitempty" doc:"missing permission"`
	Roles     []string     `json:"roles" doc:"roles of the project that have the permission"`
}

// AccessStep is one step of the chain.
type AccessStep struct {
	Text   string `json:"text"`
	Effect string `json:"effect" enum:"yes,no,nothing"`
}

func (a rest) getAccess(ctx context.Context, in *policies.AccessQuery) (*Response[AccessExplanation], error) {
	e, err := a.Accounts.Explain(ctx, actorOf(ctx), *in)
	if err != nil {
		return nil, err
	}
	v := AccessExplanation{UserID: e.Person.ID, Object: e.Object, Act: e.Act, Allowed: e.Allowed, Steps: []AccessStep{},
		Rule: append([]string{}, e.Rule...), Missing: e.Missing, Roles: append([]string{}, e.Roles...)}
	if e.Project.ID != 0 {
		v.ProjectID = &e.Project.ID
	}
	for _, s := range e.Steps {
		v.Steps = append(v.Steps, AccessStep{s.Text.String(), string(s.Effect)})
	}
	return &Response[AccessExplanation]{Body: v}, nil
}
