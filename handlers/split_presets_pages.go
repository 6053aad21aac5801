package handlers

import (
	"context"
	"strings"
	"unicode"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
	"weir/workspaces/deployments"
)

func (a *App) splitPresetsRoutes(p *echo.Group) {
	const at = "/projects/:id/split-presets"
	p.GET(at, a.page(a.splitPresetsPage))
	p.POST(at, a.submit(a.splitPresetsPage, a.createSplitPresetPage))
	p.GET(at+"/:preset/delete", a.page(a.confirmDeleteSplitPresetPage))
	p.POST(at+"/:preset/delete", a.submit(a.confirmDeleteSplitPresetPage, a.deleteSplitPresetPage))
}

// splitPresetsPage lists them; the query can name the architecture of the next one.
func (a *App) splitPresetsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	project, err := a.Projects.Project(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	f := formOf(0)
	f.Values["architecture"] = c.QueryParam("architecture")
	v := web.SplitPresetsView{ProjectID: project.ID, Project: project.Name, Form: submittedOr(c, f),
		CanSplit: a.Deployments.MaySplit(actorOf(ctx), project.ID)}
	v.Rows, err = a.Deployments.SplitPresets(ctx, actorOf(ctx), project.ID)
	return web.SplitPresetsPage(v), err
}

func (a *App) createSplitPresetPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project := number(c, "id")
	p, err := a.Deployments.CreateSplitPreset(ctx, actorOf(ctx), project, deployments.SplitPresetInput{
		ServiceType: f.text("service_type"), Architecture: f.text("architecture"), Split: models.ModelSplit(f.text("split")),
		Combine: models.ModelCombine(f.text("combine")), Cuts: words(f.text("cuts"))})
	return redirect{path("projects", project, "split-presets"), models.Say("Split preset %s created.", p.ServiceType)}, err
}

// words are the words of a text, which commas, too, can be between.
func words(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == '，' || unicode.IsSpace(r) })
}

func (a *App) confirmDeleteSplitPresetPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Deployments.SplitPresets(ctx, actorOf(ctx), number(c, "id"))
	p, err := find(list, err, models.NotFound("split preset"), func(p models.SplitPreset) bool { return p.ID == number(c, "preset") })
	return confirmPage(c, web.ConfirmDeleteSplitPreset(p)), err
}

func (a *App) deleteSplitPresetPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	project := number(c, "id")
	err := a.Deployments.DeleteSplitPreset(ctx, actorOf(ctx), project, number(c, "preset"))
	return redirect{path("projects", project, "split-presets"), models.Say("Split preset deleted.")}, err
}
