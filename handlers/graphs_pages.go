package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/storage/files"
	"weir/web"
	"weir/workspaces"
)

func (a *App) graphsRoutes(p *echo.Group) {
	p.GET("/graphs", a.graphsPage)
	p.POST("/graphs", a.planGraphPage)
}

// graphsPage is the empty form, or with example=1 the form with an example.
func (a *App) graphsPage(c echo.Context) error {
	v := web.GraphsView{Form: web.Form{Values: web.GraphDefaults()}}
	v.Form.Values["run_id"] = c.QueryParam("run_id")
	if c.QueryParam("example") == "1" {
		v.Form.Values["graph"] = web.GraphsExample
	}
	return a.render(c, http.StatusOK, web.GraphsPage(v))
}

// graphMachine reads the machine that a graph is planned for.
func (f *form) graphMachine() models.GraphMachine {
	return models.GraphMachine{CPUs: int(f.number("cpus")), Utilization: int(f.number("utilization")),
		SecondThreshold: int(f.number("second_threshold")), FirstThreshold: int(f.number("first_threshold")),
		ReducedCPUs: int(f.number("reduced_cpus")), SerialCPUs: int(f.number("serial_cpus"))}
}

// modelGraphPage is the task graph of a model in ONNX format, with its plan.
func (a *App) modelGraphPage(c echo.Context) error {
	ctx, id := c.Request().Context(), number(c, "id")
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if !f.values.Has("cpus") {
		for name, value := range web.GraphDefaults() {
			f.values.Set(name, value)
		}
	}
	v := web.ModelGraphView{Form: f.asSubmitted()}
	var e files.Entry
	if v.FilesView, e, err = a.locatedView(ctx, c); err != nil {
		return err
	}
	machine := f.graphMachine()
	v.Graph, err = a.Deployments.PlanGraph(ctx, actorOf(ctx), id, e.Path, machine)
	err = f.with(err)
	if v.Done = err == nil; v.Done {
		return a.render(c, http.StatusOK, web.ModelGraphPage(v))
	}
	v.Form = v.Form.Refuse(err)
	return a.refused(c, f, err, showing(web.ModelGraphPage(v)))
}

// planGraphPage shows the plan.
func (a *App) planGraphPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := workspaces.GraphInput{RunID: f.number("run_id"), GraphMachine: f.graphMachine()}
	v := web.GraphsView{Done: true}
	if in.Graph, err = f.uploadedText(c, "graph", workspaces.MaxGraphBytes, workspaces.MaxGraph); err == nil {
		v.Plan, err = a.Workspaces.PlanGraph(c.Request().Context(), actorOf(c.Request().Context()), in)
		err = f.with(err)
	}
	v.Form = f.asSubmitted()
	v.Form.Values["graph"] = in.Graph
	if err != nil {
		v.Form, v.Done = v.Form.Refuse(err), false
		return a.refused(c, f, err, showing(web.GraphsPage(v)))
	}
	return a.render(c, http.StatusOK, web.GraphsPage(v))
}
