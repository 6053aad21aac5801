package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

func (a *App) searchRoutes(p *echo.Group) {
	p.GET("/search", a.searchPage)
}

// searchPage shows what was found, or only the form until something is searched for.
func (a *App) searchPage(c echo.Context) error {
	f := &form{values: c.QueryParams()}
	v := web.SearchView{Text: f.text("q"), Form: f.asSubmitted()}
	if v.Text == "" {
		return a.render(c, http.StatusOK, web.SearchPage(v))
	}
	results, err := a.searchByName(c.Request().Context(), v.Text)
	if models.KindOf(err) == models.KindInvalid {
		v.Form = v.Form.Refuse(err)
		return a.render(c, http.StatusUnprocessableEntity, web.SearchPage(v))
	}
	if err != nil {
		return err
	}
	v.Results, v.More = models.Map(results.Items, func(r SearchResult) web.SearchResult { return web.SearchResult(r) }), results.More
	return a.render(c, http.StatusOK, web.SearchPage(v))
}
