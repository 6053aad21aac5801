package proxy

import (
	"context"
	"log"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"weir/models"
)

// Gate admits visitors. It is asked for every request, so that a revoked right
// ends with the next one.
type Gate interface {
	// Redeem exchanges a single-use opening token for a visit.
	Redeem(ctx context.Context, workspace int64, token string) (Visit, error)

	// Admit says where a visitor of the workspace is to be taken. It refuses
	// with a models.Error: unauthenticated for no or a bad credential,
	// not_found for what is foreign or unknown, conflict for what is the
	// visitor's own but does not run; its message says so.
	Admit(ctx context.Context, workspace int64, c Credential) (Target, error)
}

// Visit is what an opening token is worth.
type Visit struct {
	Secret  string    // the cookie's value; of characters that a cookie can carry, such as base64url
	Expires time.Time // zero: when the browser closes
	Path    string    // where the notebook begins, such as /tree
}

// Credential is what a visitor shows: one of the two.
type Credential struct{ Cookie, Bearer string }

// Target is a running notebook.
type Target struct {
	Workspace, Generation int64
	Endpoint              models.Endpoint
	Token                 string // the notebook's own secret

	// RevocationKeys are what the admission depends on; see Revoked. The proxy
	// only compares them.
	RevocationKeys []string
}

// Config is what a Proxy needs to know. Gate and AppsDomain are required.
type Config struct {
	Gate       Gate
	AppsDomain string                       // with its port: "localhost:8080"
	PortalURL  func(r *http.Request) string // origin of the portal as the visitor knows it

	// Secure says that visitors come by TLS, ended here or in front:
	// cookies are Secure and carry the __Host- prefix.
	Secure        bool
	PortalCookies []string // names that a notebook must neither see nor set

	// Page answers a browser that cannot be let through; status is 4xx or 5xx.
	Page   func(w http.ResponseWriter, r *http.Request, status int, err *models.Error)
	Logger *slog.Logger

	// OnActivity hears of requests and of WebSocket messages from visitors,
	// pings aside, at most once a second per workspace. It must be quick.
	OnActivity func(workspace int64)

	// LeaseHeld reports whether this server holds its lease: without it no bytes
	// may pass. It is asked for every piece. nil: always.
	LeaseHeld func() bool

	// Recheck is how often those inside for long (WebSockets, streams) are
	// admitted anew, for what ends by time alone and for what no event reports.
	// Zero is eight seconds.
	Recheck time.Duration
}

// ownPath begins the paths that the proxy itself answers on every origin.
const (
	ownPath  = "/.weir/"
	openPath = ownPath + "open"
)

// Proxy serves the origins of all workspaces.
type Proxy struct {
	cfg       Config
	reserved  reservedCookies
	csrf      http.CrossOriginProtection
	transport *http.Transport
	errorLog  *log.Logger // what net/http has to say
	flows     *flows
	activity  *activity
	stop      context.CancelFunc
	stopped   chan struct{}
}

// New makes a Proxy; Close ends it.
func New(cfg Config) *Proxy {
	cfg.AppsDomain = canonicalDomain(cfg.AppsDomain, cfg.Secure)
	if cfg.Page == nil {
		cfg.Page = plainPage
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.OnActivity == nil {
		cfg.OnActivity = func(int64) {}
	}
	if cfg.Recheck <= 0 {
		cfg.Recheck = 8 * time.Second
	}
	if cfg.LeaseHeld == nil {
		cfg.LeaseHeld = func() bool { return true }
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Proxy{
		cfg:       cfg,
		reserved:  reserve(cfg.PortalCookies),
		transport: newTransport(),
		errorLog:  slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
		flows:     newFlows(),
		activity:  newActivity(cfg.OnActivity),
		stop:      stop,
		stopped:   make(chan struct{}),
	}
	go p.recheckLoop(ctx)
	return p
}

// Close cuts everything in flight and lets nothing more through.
func (p *Proxy) Close() {
	p.stop()
	p.flows.closeAll()
	<-p.stopped
	p.transport.CloseIdleConnections()
}

// Revoked cuts the flows that have one of these revocation keys, unless their
// visitor would be admitted now. When it returns, no byte of them passes any
// more, and what was just being admitted is checked again. Where the gate does
// not answer the flow is cut: its visitor may connect again.
func (p *Proxy) Revoked(ctx context.Context, keys []string) {
	p.flows.epoch.Add(1)
	p.readmit(ctx, func(_ *flow, t Target) bool {
		return slices.ContainsFunc(t.RevocationKeys, func(key string) bool { return slices.Contains(keys, key) })
	}, false)
}

// Cut ends everything in flight, and what is just being admitted.
func (p *Proxy) Cut() {
	for _, f := range p.flows.all() {
		f.cut()
	}
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, ok := p.Host(r.Host)
	switch {
	case !ok, !strings.HasPrefix(r.URL.Path, "/"):
		p.respond(w, r, models.NotFound("workspace"))
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace:
		p.respondStatus(w, r, http.StatusMethodNotAllowed, errMethod)
	case r.URL.Path == openPath:
		p.redeemOpening(w, r, id)
	case strings.HasPrefix(r.URL.Path, ownPath):
		p.respond(w, r, models.NotFound("page"))
	default:
		p.serveVisit(w, r, id)
	}
}

// serveVisit takes an admitted visitor through to the notebook.
func (p *Proxy) serveVisit(w http.ResponseWriter, r *http.Request, id int64) {
	credentials := p.credentials(r)
	if len(credentials) == 0 {
		p.refuse(w, r, id, errNoCredential)
		return
	}
	if credentials[0].Bearer == "" && !p.sameSite(r, p.Origin(r, id)) {
		p.respond(w, r, errCrossSite)
		return
	}

	// The flow is known before it is admitted: a Revoked that comes between
	// admission and the first byte finds it and cuts it.
	f := p.begin(w, r, id)
	defer f.end()
	if err := f.admit(credentials); err != nil {
		if f.ctx.Err() != nil { // the visitor left, or was cut off
			panic(http.ErrAbortHandler)
		}
		p.refuse(w, r, id, err)
		return
	}
	if !p.cfg.LeaseHeld() {
		p.respond(w, r, errLeaseLost)
		return
	}
	p.activity.touch(id, time.Now())
	defer func() { p.activity.touch(id, time.Now()) }()
	f.forward()
}
