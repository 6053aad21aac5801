package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/web"
)

func (a *App) apiRoutes(g *echo.Group) {}

func (a *App) apiPage(c echo.Context) error {
	return a.render(c, http.StatusOK, web.APIPage(web.APIView{}))
}
