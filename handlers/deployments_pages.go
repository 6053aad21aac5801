package handlers

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"weir/storage/files"
	"weir/web"
	"weir/workspaces/deployments"
	"weir/workspaces/shard"
)

// modelInput reads what a model is planned for.
func (f *form) modelInput() deployments.ModelInput {
	in := deployments.ModelInput{Batch: f.number("batch"), Context: f.number("context"), Cores: f.number("cores"),
		ServiceType: f.text("service_type")}
	if devices := f.optionalText("device"); devices != nil {
		in.Devices = []string{*devices}
	}
	return in
}

// modelPage is the model in a directory, with its plan.
func (a *App) modelPage(c echo.Context) error {
	ctx, id := c.Request().Context(), number(c, "id")
	f, err := readForm(c)
	if err != nil {
		return err
	}
	v := web.ModelFactsView{Form: f.asSubmitted()}
	v.ServiceTypes = serviceTypeOptions(a.localized(c), a.Deployments.ServiceTypes(), f.text("service_type"))
	var e files.Entry
	if v.FilesView, e, err = a.locatedView(ctx, c); err != nil {
		return err
	}
	in := f.modelInput()
	v.Report, err = a.Deployments.Describe(ctx, actorOf(ctx), id, e.Path, in)
	if err = f.with(err); err != nil {
		v.Form = v.Form.Refuse(err)
		v.Form.Values["cores"] = cmp.Or(v.Form.Values["cores"], "100")
		v.Form.Values["batch"] = cmp.Or(v.Form.Values["batch"], "1")
		v.Form.Values["context"] = cmp.Or(v.Form.Values["context"], strconv.Itoa(deployments.DefaultContext))
		return a.refused(c, f, err, showing(web.ModelFactsPage(v)))
	}
	v.Done, v.CanSplit = true, a.Deployments.MaySplit(actorOf(ctx), id)
	v.ServiceTypes = serviceTypeOptions(a.localized(c), v.Report.ServiceTypes, "")
	v.Form.Values["cores"] = cmp.Or(v.Form.Values["cores"], "100")
	v.Form.Values["batch"] = strconv.FormatInt(v.Report.Memory.Batch, 10)
	v.Form.Values["context"] = strconv.FormatInt(v.Report.Memory.Context, 10)
	return a.render(c, http.StatusOK, web.ModelFactsPage(v))
}

// serviceTypeOptions are names of service types, and a chosen one of a project.
func serviceTypeOptions(ctx context.Context, names []string, chosen string) []web.Option {
	return web.Options(web.T(ctx, "by the architecture"), names, chosen)
}

// hasModel reports whether a list of files contains a model.
func hasModel(rows []web.FileRow) bool {
	return slices.ContainsFunc(rows, func(r web.FileRow) bool { return !r.IsDirectory() && shard.Is(r.Name) })
}
