package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"weir/models"
)

// Gate admits visitors. It is called for every request, so that a revocation takes
// effect with the next one.
type Gate interface {
	// Redeem exchanges a single-use opening token for a visit.
	Redeem(ctx context.Context, workspace int64, token string) (models.VisitCookie, error)

	// Leave ends a visit, whose cookie may be invalid.
	Leave(ctx context.Context, workspace int64, cookie string) error

	// Admit returns the notebook for a visitor of the workspace. Its errors are
	// of type models.Error: unauthenticated for a missing or invalid credential,
	// not_found for an unknown workspace or one of another user, conflict for one
	// that does not run.
	Admit(ctx context.Context, workspace int64, c Credential) (Target, error)
}

// Credential is the credential of a visitor: exactly one of the two.
type Credential struct{ Cookie, Bearer string }

// Target is a running notebook.
type Target struct {
	Workspace, Generation int64
	Endpoint              models.Endpoint
	Token                 string // of the notebook

	// RevocationKeys are the keys on which the admission depends; see
	// [Proxy.Revoked].
	RevocationKeys []string
}

// Config configures a Proxy. PortalURL, Secure, PortalCookies and Recheck are
// optional.
type Config struct {
	Gate       Gate
	AppsDomain string // with its port: "localhost:8080"
	PortalURL  string // origin of the portal; empty: visitors are not redirected there

	// Secure means that visitors use TLS, terminated here or before: cookies are
	// Secure and have the prefix __Host-.
	Secure        bool
	PortalCookies []string // names that a notebook must neither receive nor set

	// Page renders an error for a browser.
	Page   func(w http.ResponseWriter, r *http.Request, status int, err *models.Error)
	Logger *slog.Logger

	// OnActivity is called for requests and for WebSocket messages of visitors
	// except pings, at most once a second for each workspace. It must be quick.
	OnActivity func(workspace int64)

	// LeaseHeld reports whether this server has its lease. It is called before
	// every transfer, because nothing may be transferred without a lease.
	LeaseHeld func() bool

	// Recheck is the period in which long flows (WebSockets, streams) are
	// admitted again, because some rights expire without an event. 0 is eight
	// seconds.
	Recheck time.Duration
}
