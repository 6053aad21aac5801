package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
	"weir/workspaces"
)

func (a *App) barriersRoutes(p *echo.Group) {
	p.GET("/barriers", a.barriersPage)
	p.POST("/barriers", a.allocateBarriersPage)
}

// barriersPage is the empty form, or with example=1 the form with an example.
func (a *App) barriersPage(c echo.Context) error {
	v := web.BarriersView{Form: web.Form{Values: map[string]string{"physical": "16"}}}
	if c.QueryParam("example") == "1" {
		v.Form.Values["ptx"] = web.BarriersExample
	}
	return a.render(c, http.StatusOK, web.BarriersPage(v))
}

// allocateBarriersPage shows the allocation, or downloads the rewritten module.
func (a *App) allocateBarriersPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	in := workspaces.BarriersInput{Physical: int(f.number("physical")), Threads: int(f.number("threads"))}
	var result models.BarrierAllocation
	if in.PTX, err = f.uploadedText(c, "ptx", workspaces.MaxPTXBytes, workspaces.MaxPTX); err == nil {
		result, err = a.Workspaces.AllocateBarriers(c.Request().Context(), actorOf(c.Request().Context()), in)
		err = f.with(err)
	}
	v := web.BarriersView{Form: f.asSubmitted(), Report: result.Report, Done: true}
	v.Form.Values["ptx"] = in.PTX
	if err != nil {
		v.Form, v.Done = v.Form.Refuse(err), false
		return a.refused(c, f, err, showing(web.BarriersPage(v)))
	}
	if f.bool("download") {
		c.Response().Header().Set(echo.HeaderContentDisposition, `attachment; filename="barriers.ptx"`)
		return c.Blob(http.StatusOK, "text/plain; charset=utf-8", []byte(result.PTX))
	}
	return a.render(c, http.StatusOK, web.BarriersPage(v))
}
