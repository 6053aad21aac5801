package handlers

import (
	"context"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

// modelView shows what a model needs.
func (a *App) modelView(ctx context.Context, c echo.Context, project int64, path models.FilePath) *web.ModelView {
	_, needs, err := a.Files.ModelNeeds(ctx, actorOf(ctx), project, path)
	v := &web.ModelView{Needs: needs}
	if err != nil {
		v.Problem = publicError(err).Message
	}
	v.Form.Values = map[string]string{"model_environment": needs.Environment, "version_constraints": needs.VersionConstraints}
	if changesModel(c) {
		v.Form = submittedOr(c, v.Form)
	}
	return v
}

// changesModel reports whether a request is the form of a model's needs.
func changesModel(c echo.Context) bool { return strings.HasSuffix(c.Path(), "/environment") }

// setModelEnvironmentPage keeps the minimum resources of the manifest, if it is valid.
func (a *App) setModelEnvironmentPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	project, at := number(c, "id"), pathOf(c)
	_, needs, err := a.Files.ModelNeeds(ctx, actorOf(ctx), project, at)
	if err != nil && models.KindOf(err) != models.KindConflict {
		return redirect{}, err
	}
	needs.Environment, needs.VersionConstraints = f.text("model_environment"), f.text("version_constraints")
	_, err = a.Files.SetModelNeeds(ctx, actorOf(ctx), project, at, needs)
	return redirect{entryPath(project, at), models.Say("Environment of the model saved.")}, err
}
