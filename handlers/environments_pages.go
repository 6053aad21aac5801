package handlers

import (
	"net/http"
	"sort"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/web"
	"weir/workspaces"
)

func (a *App) environmentsRoutes(p *echo.Group) {
	p.GET("/environments", a.environmentsPage)
	p.POST("/environments", a.createEnvironmentPage)
	p.GET("/environments/new", a.newEnvironmentPage)
	p.GET("/environments/:id/edit", a.editEnvironmentPage)
	p.POST("/environments/:id", a.updateEnvironmentPage)
	p.GET("/environments/:id/delete", a.confirmDeleteEnvironmentPage)
	p.POST("/environments/:id/delete", a.deleteEnvironmentPage)
}

func (a *App) environmentsPage(c echo.Context) error {
	ctx := c.Request().Context()
	all, err := a.Catalogue.Environments(ctx, actorOf(ctx))
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.EnvironmentsPage(web.EnvironmentsView{Rows: all,
		CanEdit: a.Access.May(actorOf(ctx), policies.Platform, policies.EnvironmentWrite)}))
}

func (f *form) environmentInput() workspaces.EnvironmentInput {
	return workspaces.EnvironmentInput{Name: f.text("name"), Language: f.text("language"), LanguageVersion: f.text("language_version"),
		Versions: f.versions("versions"), Launch: f.launch("launch."), Image: f.text("image"), Command: f.lines("command"),
		Minimum: models.Minimum{GPUs: f.number("minimum.gpus"), Cores: f.number("minimum.cores"), GPUMemoryMiB: f.number("minimum.gpu_memory_mib"),
			CPUMilli: f.number("minimum.cpu_milli"), MemoryMiB: f.number("minimum.memory_mib")},
		DefaultPath: f.text("default_path"), Version: f.version()}
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
	var lines []string
	for tool, version := range e.Versions {
		lines = append(lines, tool+" "+version)
	}
	sort.Strings(lines)
	f.Values["versions"] = strings.Join(lines, "\n")
	putLaunch(f, "launch.", e.Launch)
	for name, n := range map[string]int64{"gpus": e.Minimum.GPUs, "cores": e.Minimum.Cores, "gpu_memory_mib": e.Minimum.GPUMemoryMiB,
		"cpu_milli": e.Minimum.CPUMilli, "memory_mib": e.Minimum.MemoryMiB} {
		if n > 0 {
			f.Values["minimum."+name] = models.Quantity(countName(name), n)
		}
	}
	return f
}

func (a *App) newEnvironmentPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.EnvironmentWrite); err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.EnvironmentFormPage(web.EnvironmentFormView{Form: formOf(0)}))
}

func (a *App) createEnvironmentPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.environmentInput()
	var e models.Environment
	if err = f.err(nil); err == nil {
		e, err = a.Catalogue.Create(c.Request().Context(), actorOf(c.Request().Context()), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return web.EnvironmentFormPage(web.EnvironmentFormView{Form: f.asTyped().Refuse(err)}), nil
		})
	}
	return a.done(c, "/environments", models.Say("Environment %s added.", e.Name))
}

// editEnvironmentForm is the form of one environment; f is the form that came
// back, if one did.
func (a *App) editEnvironmentForm(c echo.Context, f *web.Form) (templ.Component, error) {
	ctx := c.Request().Context()
	if err := a.Access.Check(actorOf(ctx), policies.Platform, policies.EnvironmentWrite); err != nil {
		return nil, err
	}
	e, err := a.Catalogue.Environment(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return nil, err
	}
	v := web.EnvironmentFormView{Form: environmentForm(e), ID: e.ID, Name: e.Name, Discovered: e.DiscoveredKey != nil}
	if f != nil {
		v.Form = *f
	}
	return web.EnvironmentFormPage(v), nil
}

func (a *App) editEnvironmentPage(c echo.Context) error {
	page, err := a.editEnvironmentForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) updateEnvironmentPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.environmentInput()
	var e models.Environment
	if err = f.err(nil); err == nil {
		e, err = a.Catalogue.Update(c.Request().Context(), actorOf(c.Request().Context()), number(c, "id"), in)
	}
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			w := f.asTyped().Refuse(err)
			return a.editEnvironmentForm(c, &w)
		})
	}
	return a.done(c, "/environments", models.Say("Environment %s updated.", e.Name))
}

func (a *App) deleteEnvironmentForm(c echo.Context, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	e, err := a.Catalogue.Environment(ctx, actorOf(ctx), number(c, "id"))
	v := web.ConfirmDeleteEnvironment(e)
	if refused != nil {
		v.Form = v.Form.Refuse(refused)
	}
	return web.ConfirmPage(v), err
}

func (a *App) confirmDeleteEnvironmentPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.EnvironmentWrite); err != nil {
		return err
	}
	page, err := a.deleteEnvironmentForm(c, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) deleteEnvironmentPage(c echo.Context) error {
	ctx := c.Request().Context()
	if err := a.Catalogue.Delete(ctx, actorOf(ctx), number(c, "id")); err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.deleteEnvironmentForm(c, err) })
	}
	return a.done(c, "/environments", models.Say("Environment deleted."))
}
