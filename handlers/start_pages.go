package handlers

import (
	"context"
	"strconv"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool/projects"
	"weir/web"
)

func (a *App) startRoutes(p *echo.Group) {
	p.GET("/projects/start", a.page(a.startPage))
	p.POST("/projects/start", a.submit(a.startPage, a.startProjectPage))
}

func (f *form) startInput() projects.StartInput {
	in := projects.StartInput{Name: f.text("name"), Members: f.number("members"), Quota: f.resources("quota")}
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

func (a *App) startProjectPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := f.startInput()
	if err := f.err(); err != nil {
		return redirect{}, err
	}
	v, err := a.Projects.Start(ctx, actorOf(ctx), in)
	return redirect{"/launch?project_id=" + strconv.FormatInt(v.Project.ID, 10), models.Say("Project %s created. Launch your first workspace.", v.Project.Name)}, err
}
