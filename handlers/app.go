package handlers

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"weir/handlers/live"
	"weir/handlers/metrics"
	"weir/models/store"
	"weir/policies"
	"weir/policies/notifications"
	"weir/pool"
	"weir/pool/broker"
	"weir/pool/projects"
	"weir/pool/providers"
	"weir/pool/requests"
	"weir/storage"
	"weir/storage/files"
	"weir/workspaces"
	"weir/workspaces/deployments"
)

// Proxy serves the origins of workspaces.
type Proxy interface {
	http.Handler
	Host(host string) (workspace int64, ok bool)
	Origin(r *http.Request, workspace int64) string
}

// Config contains the dependencies of an App.
type Config struct {
	Store         *store.Store
	Accounts      *policies.Accounts
	Notifications *notifications.Service
	Projects      *projects.Service
	Invitations   *projects.Invitations
	Capacity      *projects.Capacity
	Requests      *requests.Service
	Broker        *broker.Service
	Pool          *pool.Scheduler
	Providers     *providers.Service
	Enrollment    *providers.Enrollment
	Catalog       *workspaces.Catalog
	Workspaces    *workspaces.Service
	Directories   *storage.Directories
	Storage       *storage.Service
	Files         *files.Service
	Deployments   *deployments.Service
	Proxy         Proxy
	// Holds reports whether the server lease permits to send on open connections;
	// checked for each write. nil: always.
	Holds  func() bool
	Logger *slog.Logger
	// Collectors are additional Prometheus collectors.
	Collectors []prometheus.Collector

	// MetricsToken is what a scraper of /metrics sends; empty: there are no metrics.
	MetricsToken string

	// AgentsURL is the address of the agents' listener for a client that
	// reached the portal under host; nil when there is no such listener.
	AgentsURL func(host string) string

	// OIDC lets people sign in by a provider; nil: by password alone.
	OIDC *OIDC

	// Hosts are the names under which the portal is served, beside addresses and
	// localhost.
	Hosts []string

	// TrustedProxies may set X-Forwarded-For.
	TrustedProxies []netip.Prefix

	Secure          bool // browsers connect with TLS
	SessionLifetime time.Duration
	Version         string
}

// App is the portal and the REST API.
type App struct {
	Config
	echo     *echo.Echo
	routes   map[string][]string // methods by path pattern
	sessions *scs.SessionManager
	shared   shared
	events   *live.Hub
	metrics  *metrics.Metrics
}

// SessionCookie is the name of the portal's cookie.
func SessionCookie(secure bool) string {
	if secure {
		return "__Host-weir"
	}
	return "weir"
}

// SignInCookie is the name of the cookie of a browser that signs in elsewhere.
func SignInCookie(secure bool) string { return SessionCookie(secure) + "-signin" }

// DeviceCookie is the name of the cookie of a browser in which somebody has signed in.
func DeviceCookie(secure bool) string { return SessionCookie(secure) + "-device" }

// Cookies are the names of the portal's cookies that no notebook may have.
func Cookies(secure bool) []string {
	return []string{SessionCookie(secure), SignInCookie(secure), DeviceCookie(secure)}
}

// Close ends every event stream, so that a shutdown need not wait for them.
func (a *App) Close() { a.events.Close() }

// OIDC is how people sign in by a provider, beside accounts with a password.
type OIDC struct {
	Provider   SignInProvider
	Rules      policies.ProviderRules
	Origin     string        // the portal's, to which the provider redirects
	SessionMax time.Duration // how long a session lasts that began so, if that is shorter than others
}

// SignInProvider is an identity provider.
type SignInProvider interface {
	// AuthCodeURL is the URL of the provider's sign-in page.
	AuthCodeURL(ctx context.Context, pass policies.SignInState) (string, error)
	// Redeem exchanges an authorization code for the provider's assertion. issuer may
	// be empty.
	Redeem(ctx context.Context, pass policies.SignInState, code, issuer string) (policies.Assertion, error)
}
