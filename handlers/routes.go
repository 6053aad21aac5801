package handlers

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/handlers/live"
	"weir/handlers/metrics"
	"weir/web"
)

// NewApp wires the routes. Close ends its event streams.
func NewApp(c Config) *App {
	if c.Holds == nil {
		c.Holds = func() bool { return true }
	}
	a := &App{Config: c, echo: echo.New(), sessions: newSessions(c), shared: newShared(c.Store)}
	a.events = live.New(c.Accounts.CheckTopics, c.Holds)
	a.metrics = metrics.New(metrics.Sources{Store: c.Store, Pool: c.Pool, Workspaces: c.Workspaces, Streams: a.events.Count,
		Others: c.Collectors})
	c.Store.OnChange(a.events.Publish)
	c.Store.OnRevoke(a.events)
	e := a.echo
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = a.handleError
	e.IPExtractor = clientAddress(c.TrustedProxies)
	e.Pre(a.observe, a.recoverPanics, a.routeByHost)
	e.Use(a.secureHeaders, a.crossOrigin, defaultBodyLimit, importBodyLimit, binaryBodyLimit, weakenETags, compress)
	a.plainRoutes()
	signed := e.Group("", a.ownSession, echo.WrapMiddleware(a.sessions.LoadAndSave), a.authenticate)
	a.pageRoutes(signed)
	a.apiRoutes(signed)
	a.routes = map[string][]string{}
	for _, r := range e.Routes() {
		a.routes[r.Path] = append(a.routes[r.Path], r.Method)
	}
	return a
}

// plainRoutes need neither session nor actor.
func (a *App) plainRoutes() {
	e := a.echo
	e.GET(healthPath, func(c echo.Context) error { return c.String(http.StatusOK, "ok\n") })
	e.GET(readyPath, a.ready)
	e.GET("/metrics", a.scrape)
	e.GET(agentsAddressPath, a.showAgentsAddress)
	e.GET("/static/*", echo.WrapHandler(web.Static()))
	e.GET("/favicon.ico", func(c echo.Context) error { return c.Redirect(http.StatusMovedPermanently, web.Asset("favicon.svg")) })
}

// pageRoutes are the portal's pages; each has its twin in rest.operations.
func (a *App) pageRoutes(g *echo.Group) {
	a.signInRoutes(g)
	a.oidcRoutes(g)
	a.linksRoutes(g)
	g.GET("/api/docs", a.openAPIPage)
	a.docsRoutes(g)

	p := g.Group("", a.setEventCursor, a.requireSignIn)
	p.POST("/signout", a.signOutPage)
	p.GET(eventsPath, a.streamEvents)
	p.GET("/", a.cached(a.inOneState(a.homePage)))
	for _, routes := range []func(*echo.Group){a.projectsRoutes, a.startRoutes, a.rolesRoutes, a.membersRoutes, a.serviceAccountsRoutes,
		a.formerMembersRoutes, a.importsRoutes, a.usageRoutes,
		a.accountingRoutes, a.launchRoutes, a.workspacesRoutes, a.poolRoutes, a.providersRoutes, a.devicesRoutes, a.planningRoutes,
		a.requestsRoutes, a.capacityRoutes, a.environmentsRoutes, a.accessRoutes, a.peopleRoutes, a.invitationsRoutes, a.departmentsRoutes,
		a.reservationsRoutes, a.runsRoutes, a.servingRoutes, a.splitPresetsRoutes, a.signInPolicyRoutes,
		a.filesRoutes, a.curatorsRoutes, a.accountsRoutes, a.notificationsRoutes, a.webhooksRoutes,
		a.auditRoutes, a.barriersRoutes, a.graphsRoutes, a.searchRoutes} {
		routes(p)
	}
}
