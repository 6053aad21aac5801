package handlers

import (
	"cmp"
	"context"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) startRoutes(p *echo.Group) {
	p.GET("/projects/start", a.page(a.startPage))
	p.POST("/projects/start", a.startProjectPage)
}

func (f *form) startInput() projects.StartInput {
	in := projects.StartInput{Name: f.text("name"), Members: f.number("members"),
		Emails: strings.FieldsFunc(f.text("emails"), func(r rune) bool {
			return unicode.IsSpace(r) ||
				strings.ContainsRune(",;，；", r)
		}), Quota: f.resources("quota"), Confirmation: f.confirmation()}
	if f.text("members") != "" && in.Members == 0 {
		f.problems.Add("members", "must be from 1 to %d", 1000)
	}
	return in
}

// startPage is the form of a new project with its roles.
func (a *App) startPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	p, err := a.Projects.PreviewStart(ctx, actorOf(ctx), projects.StartInput{})
	if models.KindOf(err) != models.KindInvalid && err != nil {
		return nil, err
	}
	v := web.StartView{Form: formOf(0)}
	if len(p.Quota) > 0 {
		v.Form.Values["quota.gpu_cores"] = models.ExactQuantity(p.Quota[0].Name, p.Quota[0].Value)
		v.Form.Values["members"] = strconv.FormatInt(p.Members, 10)
	}
	v.Form = submittedOr(c, v.Form)
	v.Preview, err = a.previewStart(ctx, v.Form)
	return web.StartPage(v), err
}

// previewStart previews the form of a new project with its roles.
func (a *App) previewStart(ctx context.Context, w web.Form) (*web.PreviewView, error) {
	f := formFrom(w)
	in := f.startInput()
	p, err := a.Projects.PreviewStart(ctx, actorOf(ctx), in)
	v, err := previewFilled(p.Quota, p.Beyond, cmp.Or(f.err(), nameAddresses(err, in.Emails)))
	if err == nil && v.Refused == nil {
		for i, limit := range p.Limit {
			v.Filled[i].Limit = &limit.Value
		}
	}
	return v, err
}

// startProjectPage creates the project, and shows the links of invitations once;
// without any, the launch of the first workspace follows.
func (a *App) startProjectPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if f.bool("preview") {
		return a.renderSubmitted(c, http.StatusOK, f.asSubmitted(), a.startPage)
	}
	in := f.startInput()
	var v projects.Started
	if err = f.errWith(in.Check()); err == nil {
		v, err = a.Projects.Start(c.Request().Context(), actorOf(c.Request().Context()), in)
	}
	if err != nil {
		return a.refused(c, f, nameAddresses(err, in.Emails), a.startPage)
	}
	launch := "/launch?project_id=" + strconv.FormatInt(v.Project.ID, 10)
	if len(v.Invited) == 0 {
		return a.redirectWithFlash(c, launch, models.Say("Project %s created. Launch your first workspace.", v.Project.Name))
	}
	view := web.StartedView{Name: v.Project.Name, Launch: launch, ByMail: a.Store.Mail, Links: a.invitationLinks(c, v.Invited)}
	return a.render(c, http.StatusCreated, web.StartedPage(view))
}
