package handlers

import (
	"context"
	"net/http"
	"net/url"
	"sort"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/pool"
	"weir/web"
	"weir/workspaces"
)

func (a *App) launchRoutes(p *echo.Group) {
	p.GET("/launch", a.newWorkspacePage)
	p.POST("/workspaces", a.launchWorkspacePage)
}

// fillLaunch puts a preview into the launch page.
func fillLaunch(v *web.LaunchView, p workspaces.Preview, view pool.View) {
	v.GPUModels = gpuModels(view)
	v.Meters = web.LimitMeters(p.Use.InUseByMember, p.Target.Demand.Resources(), p.Use.Limit)
	for _, m := range p.Fitting {
		v.Environments = append(v.Environments, web.EnvironmentChoice{ID: m.Environment.ID, Name: m.Environment.Name,
			Versions: versionsOf(m.Environment), Matched: m.Matched})
	}
	for _, m := range p.Refused {
		v.Refused = append(v.Refused, web.EnvironmentRefused{Name: m.Environment.Name, Reasons: m.Reasons})
	}
	v.Target = p.Target.Parameters
	v.Defaults = map[string]string{}
	for _, t := range p.Target.Parameters {
		v.Defaults[t.Name] = t.Value
		if n, err := strconv.ParseInt(t.Value, 10, 64); err == nil {
			v.Defaults[t.Name] = models.Quantity(countName(t.Name), n)
		}
	}
	if p.Chosen.ID != 0 && p.Decision.Outcome != "" {
		v.Decision = decisionView(p.Decision, p.Target.Demand, view)
	}
}

func decisionView(a models.Decision, d models.Demand, view pool.View) web.Decision {
	v := web.Decision{Outcome: a.Outcome, AskedCores: d.GPUs * d.Cores, Explanation: a.Explanation, Reasons: a.Reasons}
	devices := grantedDevices(a, view)
	v.Simulated = anySimulated(devices)
	if len(a.Grants) > 0 {
		v.Enforcement = a.Grants[0].Enforcement
	}
	switch a.Outcome {
	case models.OutcomeGranted:
		v.Devices, v.FreeCores = devices, v.AskedCores
	case models.OutcomePartial:
		v.FreeCores = a.Fewer.GPUs * a.Fewer.Cores
		v.Fewer = &web.Fewer{Cores: v.FreeCores, GPUMemoryMiB: a.Fewer.GPUs * a.Fewer.GPUMemoryMiB, Devices: devices}
		v.Wait = &web.Wait{Before: a.Waiting}
	case models.OutcomeDelayed:
		v.Wait = &web.Wait{Before: a.Waiting}
	}
	return v
}

// grantedDevices draws where an answer's shares would lie.
func grantedDevices(a models.Decision, view pool.View) (list []web.Device) {
	for _, g := range a.Grants {
		for _, p := range view.Providers {
			for _, d := range p.Devices {
				if d.ID != g.Device.ID {
					continue
				}
				v := deviceView(d, 0)
				v.State = models.Text{}
				v.Provider, v.Enforcement = p.Name, g.Enforcement
				v.Shares = append(v.Shares, web.Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, New: true})
				v.FreeCores, v.FreeMemoryMiB = max(v.FreeCores-g.Cores, 0), max(v.FreeMemoryMiB-g.MemoryMiB, 0)
				list = append(list, v)
			}
		}
	}
	return list
}

func gpuModels(view pool.View) []string {
	seen := map[string]bool{}
	var list []string
	for _, p := range view.Providers {
		for _, d := range p.Devices {
			if !seen[d.Model] {
				seen[d.Model] = true
				list = append(list, d.Model)
			}
		}
	}
	sort.Strings(list)
	return list
}

// versionsOf formats the versions of an environment.
func versionsOf(e models.Environment) string {
	parts := []string{e.Language + " " + e.LanguageVersion}
	tools := make([]string, 0, len(e.Versions))
	for tool := range e.Versions {
		tools = append(tools, tool)
	}
	sort.Strings(tools)
	for _, tool := range tools {
		parts = append(parts, tool+" "+e.Versions[tool])
	}
	return strings.Join(parts, " · ")
}

// launchAgain is the address of the launch form with the member's previous input.
func launchAgain(w models.Workspace) string {
	q := url.Values{"project_id": {strconv.FormatInt(w.ProjectID, 10)}, "environment_id": {strconv.FormatInt(w.EnvironmentID, 10)}, "name": {w.Name}}
	var env []string
	for _, p := range w.Target {
		if p.Origin != workspaces.OriginMember {
			continue
		}
		if name, ok := strings.CutPrefix(p.Name, "env."); ok {
			env = append(env, name+"="+p.Value)
			continue
		}
		value := p.Value
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			value = models.Quantity(countName(p.Name), n)
		}
		q.Set(p.Name, value)
	}
	if len(env) > 0 {
		q.Set("env", strings.Join(env, "\n"))
	}
	return "/launch?" + q.Encode()
}

func (f *form) launchInput() workspaces.LaunchInput {
	return workspaces.LaunchInput{ProjectID: f.number("project_id"), EnvironmentID: f.number("environment_id"), Versions: f.text("versions"),
		Name: f.text("name"), Request: f.launch(""), WhenShort: f.text("when_short")}
}

func (a *App) newWorkspacePage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	page, err := a.launchForm(c, f, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) launchWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.launchInput()
	var w models.Workspace
	if err = f.err(); err == nil {
		w, err = a.Workspaces.Launch(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, f, err, func(context.Context, echo.Context) (templ.Component, error) { return a.launchForm(c, f, err) })
	}
	return c.Redirect(http.StatusSeeOther, path("workspaces", w.ID))
}

// launchForm is the launch page for the values of f: the preview, and the reason if a
// launch was refused.
func (a *App) launchForm(c echo.Context, f *form, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	actor := actorOf(ctx)
	v := web.LaunchView{Form: f.asSubmitted()}
	mine, err := a.Projects.Participations(ctx, actor, actor.User.ID)
	if err != nil {
		return nil, err
	}
	in := f.launchInput()
	for _, m := range mine {
		if m.Project.Active(a.Store.Now()) {
			v.Projects = append(v.Projects, web.Option{Value: strings.TrimPrefix(path(m.Project.ID), "/"), Label: m.Project.Name})
			if in.ProjectID == 0 {
				in.ProjectID = m.Project.ID
			}
		}
		if m.Project.ID == in.ProjectID {
			v.Project, v.Role = m.Project.Name, m.Member.RoleName
			v.Form.Values["project_id"] = strings.TrimPrefix(path(m.Project.ID), "/")
		}
	}
	if in.ProjectID == 0 {
		return web.LaunchPage(v), nil
	}
	p, err := a.Workspaces.Preview(ctx, actor, in)
	if err != nil {
		return nil, err
	}
	view, err := a.Pool.View(ctx, actor)
	if err != nil {
		return nil, err
	}
	fillLaunch(&v, p, view)
	if v.Decision.Wait != nil {
		f, err := a.estimate(ctx, p)
		if err != nil {
			return nil, err
		}
		v.Decision.Wait.Starts = f.Text
	}
	switch {
	case refused != nil:
		v.Form = v.Form.Refuse(refused)
	case f.err() != nil:
		v.Form = v.Form.Refuse(f.err())
	case len(p.Problems) > 0:
		v.Form = v.Form.Refuse(&models.Error{Kind: models.KindInvalid, Message: p.Message, Fields: p.Problems})
	}
	v.CanLaunch = p.Chosen.ID != 0 && len(p.Problems) == 0 && f.err() == nil && p.Decision.Outcome != models.OutcomeRefused
	return web.LaunchPage(v), nil
}

// estimate estimates the start of the previewed launch if it was queued now.
func (a *App) estimate(ctx context.Context, p workspaces.Preview) (pool.Estimate, error) {
	return a.Pool.Estimate(ctx, models.Workspace{ProjectID: p.Project.ID, Demand: p.Target.Demand})
}
