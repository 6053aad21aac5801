package handlers

import (
	"mime"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/docs"
	"weir/models"
	"weir/web"
)

// docsRoutes are the documentation: pages, and with the ending .md or another their
// files. It contains no secrets and needs no session.
func (a *App) docsRoutes(g *echo.Group) {
	g.GET("/docs", a.docsPage)
	g.GET("/docs/*", a.docsPage)
}

func (a *App) docsPage(c echo.Context) error {
	name := strings.TrimSuffix(c.Param("*"), "/")
	if filepath.Ext(name) != "" {
		return docsFile(c, name)
	}
	lang := a.language(c.Request())
	p, ok := docs.Find(name, lang)
	if !ok {
		return models.NotFound("page")
	}
	v := web.DocsView{Name: p.Name, Title: p.Title, Lang: p.Lang, HTML: p.HTML, Query: strings.TrimSpace(c.QueryParam("q"))}
	for _, g := range docs.Contents(lang) {
		group := web.DocsGroup{Title: g.Title}
		for _, p := range g.Pages {
			group.Pages = append(group.Pages, web.DocsLink{Title: p.Title, Lang: p.Lang, Address: p.Address()})
		}
		v.Groups = append(v.Groups, group)
	}
	if v.Query != "" {
		v.Title = web.T(a.localized(c), "Search: %s", v.Query)
		for _, h := range docs.Search(v.Query, lang) {
			v.Hits = append(v.Hits, web.DocsHit{Page: h.Page.Title, Section: h.Title, Lang: h.Page.Lang, Address: h.Address, Excerpt: h.Excerpt})
		}
	}
	return a.render(c, http.StatusOK, web.DocsPage(v))
}

// docsFile responds with a file as it is: the Markdown of a page, a picture.
func docsFile(c echo.Context, name string) error {
	b, err := docs.File(name)
	if err != nil {
		return models.NotFound("page")
	}
	kind := mime.TypeByExtension(filepath.Ext(name))
	if filepath.Ext(name) == ".md" {
		kind = "text/markdown; charset=utf-8"
	}
	return c.Blob(http.StatusOK, kind, b)
}
