package handlers

import (
	"context"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/storage"
	"weir/storage/rules"
	"weir/web"
)

func (a *App) curatorsRoutes(p *echo.Group) {
	p.GET("/curators", a.page(a.curatorsPage))
	p.POST("/curators", a.submit(a.curatorsPage, a.addCuratorPage))
	p.GET("/curators/:id/delete", a.page(a.confirmRemoveCuratorPage))
	p.POST("/curators/:id/delete", a.submit(a.confirmRemoveCuratorPage, a.removeCuratorPage))
}

func (a *App) curatorsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	list, err := a.Storage.Curators(ctx, actorOf(ctx), pageAfter(c))
	return web.CuratorsPage(web.CuratorsView{Rows: list, Directories: rules.PublicDirs(), Form: submittedOr(c, formOf(0)),
		Next: nextPage(c, list, func(r models.CuratorView) int64 { return r.ID })}), err
}

func (a *App) addCuratorPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	in := storage.CuratorInput{Directory: f.text("directory"), Email: f.text("email"), ProjectName: f.text("project_name")}
	c, err := a.Storage.AddCurator(ctx, actorOf(ctx), in)
	return redirect{"/curators", models.Say("%s can write in %s now.", c.Name(), c.Directory)}, err
}

func (a *App) confirmRemoveCuratorPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	curator, err := a.Storage.Curator(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmRemoveCurator(curator)), err
}

func (a *App) removeCuratorPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	err := a.Storage.RemoveCurator(ctx, actorOf(ctx), number(c, "id"))
	return redirect{"/curators", models.Say("Curator removed.")}, err
}
