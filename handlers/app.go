package handlers

import (
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"weir/models"
	"weir/policies"
	"weir/policies/notices"
	"weir/pool"
	"weir/storage"
	"weir/workspaces"
)

// Proxy serves the origins of workspaces.
type Proxy interface {
	http.Handler
	Host(host string) (workspace int64, ok bool)
	Origin(r *http.Request, workspace int64) string
}

// Config is what an App works with.
type Config struct {
	Store       *models.Store
	Access      *policies.Access
	Accounts    *policies.Accounts
	Notices     *notices.Service
	Ledger      *pool.Ledger
	Promises    *pool.Promises
	Requests    *pool.Requests
	Pool        *pool.Pool
	Enrolment   *pool.Enrolment
	Catalogue   *workspaces.Catalogue
	Workspaces  *workspaces.Service
	Directories *storage.Directories
	Proxy       Proxy
	Wake        func() // tells the reconciler that there is work
	// Holds tells whether anything may be sent on open connections now, for
	// each piece; nil: always.
	Holds  func() bool
	Logger *slog.Logger
	// Collectors are what others measure, for Prometheus.
	Collectors []prometheus.Collector

	// AgentsURL is the address of the agents' listener for a client that
	// reached the portal under host; nil when there is no such listener.
	AgentsURL func(host string) string

	// OIDC lets people sign in by a provider; nil: by password alone.
	OIDC *OIDC

	// TrustedProxies are those whose word about a client's address counts.
	TrustedProxies []netip.Prefix

	Secure          bool // browsers come over TLS
	SessionLifetime time.Duration
	Version         string
}

// App is the portal and the REST API.
type App struct {
	Config
	echo     *echo.Echo
	sessions *scs.SessionManager
	hub      *hub
	metrics  *metrics
}

// SessionCookie is the name of the portal's cookie.
func SessionCookie(secure bool) string {
	if secure {
		return "__Host-weir"
	}
	return "weir"
}

func (a *App) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.echo.ServeHTTP(w, r) }

// Close ends every event stream, so that a shutdown need not wait for them.
func (a *App) Close() { a.hub.close() }

// pageRoutes are the portal's pages; each has its twin in apiRoutes.
func (a *App) pageRoutes(g *echo.Group) {
	g.GET("/setup", a.setupPage)
	g.POST("/setup", a.submitSetupPage)
	g.GET("/signin", a.signInPage)
	g.POST("/signin", a.submitSignInPage)
	a.oidcRoutes(g)
	g.POST("/language", a.setLanguagePage)
	g.GET("/api/docs", a.openAPIPage)

	p := g.Group("", a.markEvents, a.requireSignIn)
	p.POST("/signout", a.signOutPage)
	p.GET("/events", a.streamEvents)
	p.GET("/", a.homePage)
	p.GET("/projects", a.projectsPage)
	p.POST("/projects", a.createProjectPage)
	p.GET("/projects/new", a.newProjectPage)
	p.GET("/projects/:id", a.projectPage)
	p.POST("/projects/:id", a.updateProjectPage)
	p.GET("/projects/:id/edit", a.editProjectPage)
	p.GET("/projects/:id/usage", a.usagePage)
	p.POST("/projects/:id/roles", a.createRolePage)
	p.GET("/projects/:id/roles/new", a.newRolePage)
	p.POST("/projects/:id/roles/:role", a.updateRolePage)
	p.GET("/projects/:id/roles/:role/edit", a.editRolePage)
	p.GET("/projects/:id/roles/:role/delete", a.confirmDeleteRolePage)
	p.POST("/projects/:id/roles/:role/delete", a.deleteRolePage)
	p.POST("/projects/:id/members", a.addMemberPage)
	p.GET("/projects/:id/members/new", a.newMemberPage)
	p.POST("/projects/:id/members/:member", a.updateMemberPage)
	p.GET("/projects/:id/members/:member/edit", a.editMemberPage)
	p.GET("/projects/:id/members/:member/delete", a.confirmRemoveMemberPage)
	p.POST("/projects/:id/members/:member/delete", a.removeMemberPage)
	p.GET("/launch", a.newWorkspacePage)
	p.GET("/workspaces", a.workspacesPage)
	p.POST("/workspaces", a.launchWorkspacePage)
	p.GET("/workspaces/:id", a.workspacePage)
	p.GET("/workspaces/:id/open", a.openWorkspacePage)
	p.POST("/workspaces/:id/stop", a.stopWorkspacePage)
	a.poolRoutes(p)
	a.requestRoutes(p)
	p.GET("/environments", a.environmentsPage)
	p.POST("/environments", a.createEnvironmentPage)
	p.GET("/environments/new", a.newEnvironmentPage)
	p.GET("/environments/:id/edit", a.editEnvironmentPage)
	p.POST("/environments/:id", a.updateEnvironmentPage)
	p.GET("/environments/:id/delete", a.confirmDeleteEnvironmentPage)
	p.POST("/environments/:id/delete", a.deleteEnvironmentPage)
	p.GET("/access", a.accessPage)
	p.GET("/people", a.peoplePage)
	p.POST("/people", a.createPersonPage)
	p.GET("/people/new", a.newPersonPage)
	p.GET("/people/:id", a.personPage)
	p.POST("/people/:id", a.updatePersonPage)
	p.POST("/people/:id/password", a.resetPasswordPage)
	p.GET("/people/:id/identities/:identity/delete", a.confirmDeleteIdentityPage)
	p.POST("/people/:id/identities/:identity/delete", a.deleteIdentityPage)
	p.GET("/tokens", a.tokensPage)
	p.POST("/tokens", a.createTokenPage)
	p.GET("/tokens/:id/delete", a.confirmDeleteTokenPage)
	p.POST("/tokens/:id/delete", a.deleteTokenPage)
	p.GET("/account", a.accountPage)
	p.POST("/account/password", a.changePasswordPage)
	p.GET("/audit", a.auditPage)
	a.departmentRoutes(p)
	a.importRoutes(p)
	a.leaverRoutes(p)
	a.noticeRoutes(p)
}

// poolRoutes are the pages of the pool.
func (a *App) poolRoutes(p *echo.Group) {
	p.GET("/pool", a.poolPage)
	p.GET("/pool/what-if", a.planningPage)
	p.GET("/pool/devices/:id", a.devicePage)
	p.POST("/pool/devices/:id", a.updateDevicePage)
	p.POST("/pool/providers", a.authorizeProviderPage)
	p.GET("/pool/providers/new", a.newProviderPage)
	p.GET("/pool/providers/:id", a.providerPage)
	p.POST("/pool/providers/:id", a.updateProviderPage)
	p.POST("/pool/providers/:id/drain", a.drainProviderPage)
	p.POST("/pool/providers/:id/resume", a.resumeProviderPage)
	p.POST("/pool/providers/:id/recall", a.recallProviderPage)
	p.POST("/pool/providers/:id/accept", a.acceptProviderPage)
	p.GET("/pool/providers/:id/revoke", a.confirmRevokeProviderPage)
	p.POST("/pool/providers/:id/revoke", a.revokeProviderPage)
	p.GET("/pool/providers/:id/remove", a.confirmRemoveProviderPage)
	p.POST("/pool/providers/:id/remove", a.removeProviderPage)
}
