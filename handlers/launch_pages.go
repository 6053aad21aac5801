package handlers

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
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
	p.GET("/launch", a.page(a.newWorkspacePage))
	p.POST("/workspaces", a.launchWorkspacePage)
}

// fillLaunch puts a plan into the launch page.
func fillLaunch(v *web.LaunchView, p workspaces.Plan, view pool.LaunchView) {
	v.GPUModels = view.Models
	v.Meters = web.LimitMeters(p.Use.InUseByMember, cmp.Or(p.Demand, p.Refused).Resources(), p.Use.Limit)
	for _, m := range p.Matches {
		v.Environments = append(v.Environments, web.EnvironmentChoice{ID: m.Environment.ID, Name: m.Environment.Name,
			Versions: versionsOf(m.Environment), Matched: m.Matched})
	}
	for _, m := range p.Mismatches {
		if strconv.FormatInt(m.Environment.ID, 10) == v.Form.Value("environment_id") { // it stays selected, as it is refused
			v.Environments = append(v.Environments, web.EnvironmentChoice{ID: m.Environment.ID, Name: m.Environment.Name,
				Versions: versionsOf(m.Environment)})
			continue
		}
		v.Mismatches = append(v.Mismatches, web.EnvironmentMismatch{Name: m.Environment.Name, Reasons: m.Reasons})
	}
	v.Target = p.Target.Parameters
	v.Defaults = map[string]string{}
	for _, t := range p.Target.Parameters {
		v.Defaults[t.Name] = t.Value
		if n, err := strconv.ParseInt(t.Value, 10, 64); err == nil {
			v.Defaults[t.Name] = models.Quantity(t.Name, n)
		}
	}
	if p.Decision.Outcome != "" {
		v.Decision = decisionView(p, view)
	}
}

func decisionView(p workspaces.Plan, view pool.LaunchView) web.Decision {
	d := p.Decision
	v := web.Decision{Outcome: d.Outcome, RequestedCores: p.Demand.GPUs * p.Demand.Cores, Explanation: d.Explanation, Reasons: d.Reasons}
	devices := grantedDevices(d, view)
	v.Simulated = anySimulated(devices)
	if len(d.Grants) > 0 {
		v.Enforcement = d.Grants[0].Enforcement
	}
	switch d.Outcome {
	case models.OutcomeGranted:
		v.Devices, v.FreeCores = devices, v.RequestedCores
	case models.OutcomePartial:
		v.FreeCores = d.Fewer.GPUs * d.Fewer.Cores
		v.Fewer = &web.Fewer{Cores: v.FreeCores, GPUMemoryMiB: d.Fewer.GPUs * d.Fewer.GPUMemoryMiB, Devices: devices}
		v.Wait = &web.Wait{Before: d.Waiting, Starts: web.Start{Text: view.Estimate.Text, At: view.Estimate.At}}
	case models.OutcomeDelayed:
		v.Wait = &web.Wait{Before: d.Waiting, Starts: web.Start{Text: view.Estimate.Text, At: view.Estimate.At}}
	}
	return v
}

// impossible is the decision on a launch that is refused whatever is entered.
func impossible(err error) web.Decision {
	e := publicError(err)
	v := web.Decision{Outcome: models.OutcomeRefused, Explanation: e.Message}
	if e.Kind == models.KindInvalid {
		v.Explanation = models.Text{}
	}
	for _, f := range e.Fields {
		v.Reasons = append(v.Reasons, f.Reason)
	}
	return v
}

// grantedDevices draws where a decision's shares would lie.
func grantedDevices(decision models.Decision, view pool.LaunchView) (list []web.Device) {
	for i, d := range view.Devices {
		v, g := deviceView(d, 0), decision.Grants[i]
		v.State = models.Text{}
		v.Provider, v.Enforcement = d.ProviderName, g.Enforcement
		v.Shares = append(v.Shares, web.Share{Cores: g.Cores, MemoryMiB: g.MemoryMiB, New: true})
		v.FreeCores, v.FreeMemoryMiB = max(v.FreeCores-g.Cores, 0), max(v.FreeMemoryMiB-g.MemoryMiB, 0)
		list = append(list, v)
	}
	return list
}

// versionsOf formats the versions of an environment.
func versionsOf(e models.Environment) string {
	parts := []string{strings.TrimSpace(e.Language + " " + e.LanguageVersion)}
	for _, tool := range slices.Sorted(maps.Keys(e.Versions)) {
		parts = append(parts, tool+" "+e.Versions[tool])
	}
	return strings.Join(parts, " · ")
}

// launchAgain is the address of the launch form with the member's previous input.
func launchAgain(w models.Workspace) string {
	q := url.Values{"project_id": {strconv.FormatInt(w.ProjectID, 10)}, "environment_id": {strconv.FormatInt(w.EnvironmentID, 10)},
		"name": {w.Name}}
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
			value = models.ExactQuantity(p.Name, n)
		}
		q.Set(p.Name, value)
	}
	if len(env) > 0 {
		q.Set("env", strings.Join(env, "\n"))
	}
	return "/launch?" + q.Encode()
}

func (f *form) launchInput() workspaces.LaunchInput {
	return workspaces.LaunchInput{ProjectID: f.number("project_id"), EnvironmentID: f.number("environment_id"),
		VersionConstraints: f.text("version_constraints"), Name: f.text("name"), ModelPath: models.FilePath(f.values.Get("model_path")),
		Request: f.launch(""), ReservationID: f.number("reservation_id"), WhenInsufficient: f.text("when_insufficient")}
}

// newWorkspacePage is cached as long as nothing is typed in.
func (a *App) newWorkspacePage(ctx context.Context, c echo.Context) (templ.Component, error) {
	if query := c.QueryParams(); len(query) == 0 || len(query) == 1 && query.Has("project_id") {
		return a.cachedPage(a.launchPreviewPage)(ctx, c)
	}
	return a.launchPreviewPage(ctx, c)
}

func (a *App) launchPreviewPage(_ context.Context, c echo.Context) (templ.Component, error) {
	f, err := readForm(c)
	if err != nil {
		return nil, err
	}
	return a.launchForm(c, f, nil)
}

func (a *App) launchWorkspacePage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := f.launchInput()
	var w models.Workspace
	if err = f.errWith(in.Check()); err == nil {
		w, err = a.Workspaces.Launch(ctx, actorOf(ctx), in)
	}
	if err != nil {
		return a.refused(c, f, err, func(context.Context, echo.Context) (templ.Component, error) { return a.launchForm(c, f, err) })
	}
	return c.Redirect(http.StatusSeeOther, path("workspaces", w.ID))
}

// launchForm is the launch page for the values of f: the plan, and the reason if a
// launch was refused.
func (a *App) launchForm(c echo.Context, f *form, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	auto := slices.Contains([]string{"", "0", f.values.Get("environment_auto")}, f.values.Get("environment_id"))
	if auto && refused == nil { // the page has selected it, and may select another one
		f.values.Del("environment_id")
	}
	v := web.LaunchView{Form: f.asSubmitted(), AutoEnvironment: auto}
	p, err := a.Workspaces.Preview(ctx, actorOf(ctx), f.launchInput())
	if err != nil || p.Project.ID == 0 {
		return web.LaunchPage(v), err
	}
	view, err := a.launchView(ctx, p)
	if err != nil {
		return nil, err
	}
	v.Projects = projectOptions(p.Projects)
	v.Project, v.Role, v.Model, v.Needs = p.Project.Name, p.Role, models.VisibleName(f.values.Get("model_path")), p.Model.Needs
	v.Form.Values["project_id"] = strconv.FormatInt(p.Project.ID, 10)
	if p.Environment.ID != 0 { // the best one may not permit the amounts
		v.Form.Values["environment_id"] = strconv.FormatInt(p.Environment.ID, 10)
	}
	fillLaunch(&v, p, view)
	judge(&v, p, refused, f.err())
	return web.LaunchPage(v), nil
}

// judge shows whether what a form describes can start: what was entered wrong stands at
// the fields, and the decision says why it is impossible, whatever the pool has. parsing
// is what could not be read, without which there is no decision.
func judge(v *web.LaunchView, p workspaces.Plan, refused, parsing error) {
	switch {
	case parsing != nil:
		v.Decision = web.Decision{}
	case p.Rejection != nil:
		demand := cmp.Or(p.Demand, p.Refused)
		v.Decision = impossible(p.Rejection)
		v.Decision.RequestedCores = demand.GPUs * demand.Cores
	}
	switch err := cmp.Or(refused, parsing); {
	case err != nil:
		v.Form = v.Form.Refuse(err)
	case p.Rejection != nil && p.Requested && len(publicError(p.Rejection).Fields) > 0:
		v.Form = v.Form.Refuse(p.Rejection)
	}
	if p.Rejection != nil && v.Form.Failed() {
		v.Decision.Reasons = nil // they stand at the fields
	}
	v.CanLaunch = p.Rejection == nil && parsing == nil && p.Decision.Outcome != models.OutcomeRefused
}

// launchView is what the pool shows of a plan.
func (a *App) launchView(ctx context.Context, p workspaces.Plan) (pool.LaunchView, error) {
	return a.Pool.LaunchView(ctx, actorOf(ctx), p.Project, p.Demand, p.Decision)
}
