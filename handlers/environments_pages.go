package handlers

import (
	"context"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
	"weir/workspaces"
)

func (a *App) environmentsRoutes(p *echo.Group) {
	p.GET("/environments", a.page(a.environmentsPage))
	p.POST("/environments", a.submit(a.environmentPage, a.createEnvironmentPage))
	p.GET("/environments/new", a.page(a.environmentPage))
	p.GET("/environments/:id/edit", a.page(a.environmentPage))
	p.POST("/environments/:id", a.submit(a.environmentPage, a.updateEnvironmentPage))
	p.GET("/environments/:id/delete", a.page(a.confirmDeleteEnvironmentPage))
	p.POST("/environments/:id/delete", a.submit(a.confirmDeleteEnvironmentPage, a.deleteEnvironmentPage))
}

func (a *App) environmentsPage(ctx context.Context, _ echo.Context) (templ.Component, error) {
	all, err := a.Catalog.Environments(ctx, actorOf(ctx))
	return web.EnvironmentsPage(web.EnvironmentsView{Rows: all}), err
}

func (f *form) environmentInput() workspaces.EnvironmentInput {
	return workspaces.EnvironmentInput{Name: f.text("name"), Language: f.text("language"), LanguageVersion: f.text("language_version"),
		Versions: f.versions("versions"), Launch: f.launch("launch."), Image: f.text("image"), Command: f.lines("command"),
		Minimum: models.Minimum{GPUs: f.number("minimum.gpus"), Cores: f.number("minimum.cores"),
			GPUMemoryMiB: f.number("minimum.gpu_memory_mib"), CPUMilli: f.number("minimum.cpu_milli"), MemoryMiB: f.number("minimum.memory_mib")},
		DefaultPath: f.text("default_path"), NoNotebook: f.bool("no_notebook"), Version: f.version()}
}

// versions reads lines such as "torch 2.9.0".
func (f *form) versions(name string) map[string]string {
	versions := map[string]string{}
	for _, line := range f.lines(name) {
		tool, version, ok := strings.Cut(line, " ")
		if !ok {
			f.problems.Add(name, "each line must be a name and a version, such as torch 2.9.0")
			return nil
		}
		versions[tool] = strings.TrimSpace(version)
	}
	return versions
}

func environmentForm(e models.Environment) web.Form {
	f := formOf(e.Version)
	f.Values["name"], f.Values["language"], f.Values["language_version"] = e.Name, e.Language, e.LanguageVersion
	f.Values["image"], f.Values["command"], f.Values["default_path"] = e.Image, strings.Join(e.Command, "\n"), e.DefaultPath
	if e.NoNotebook {
		f.Values["no_notebook"] = "1"
	}
	var lines []string
	for tool, version := range e.Versions {
		lines = append(lines, tool+" "+version)
	}
	slices.Sort(lines)
	f.Values["versions"] = strings.Join(lines, "\n")
	putLaunch(f, "launch.", e.Launch)
	for name, n := range map[string]int64{"gpus": e.Minimum.GPUs, "cores": e.Minimum.Cores, "gpu_memory_mib": e.Minimum.GPUMemoryMiB,
		"cpu_milli": e.Minimum.CPUMilli, "memory_mib": e.Minimum.MemoryMiB} {
		if n > 0 {
			f.Values["minimum."+name] = models.ExactQuantity(name, n)
		}
	}
	return f
}

// environmentPage is the form of an environment, or of a new one.
func (a *App) environmentPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	e, err := a.Catalog.EnvironmentForm(ctx, actorOf(ctx), optionalNumber(c, "id"))
	v := web.EnvironmentFormView{Form: formOf(0), ID: e.ID, Name: e.Name, Discovered: e.DiscoveredKey != nil}
	if e.ID != 0 {
		v.Form = environmentForm(e)
	}
	v.Form = submittedOr(c, v.Form)
	return web.EnvironmentFormPage(v), err
}

func (a *App) createEnvironmentPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := f.environmentInput()
	if err := f.errWith(in.Check()); err != nil {
		return redirect{}, err
	}
	e, err := a.Catalog.Create(ctx, actorOf(ctx), in)
	return redirect{"/environments", models.Say("Environment %s added.", e.Name)}, err
}

func (a *App) updateEnvironmentPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	in := f.environmentInput()
	if err := f.errWith(in.Check()); err != nil {
		return redirect{}, err
	}
	e, err := a.Catalog.Update(ctx, actorOf(ctx), number(c, "id"), in)
	return redirect{"/environments", models.Say("Environment %s updated.", e.Name)}, err
}

func (a *App) confirmDeleteEnvironmentPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	e, err := a.Catalog.EnvironmentForm(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	return confirmPage(c, web.ConfirmDeleteEnvironment(e, a.Catalog.CheckDelete(ctx, actorOf(ctx), e.ID))), nil
}

func (a *App) deleteEnvironmentPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	err := a.Catalog.Delete(ctx, actorOf(ctx), number(c, "id"))
	return redirect{"/environments", models.Say("Environment deleted.")}, err
}
