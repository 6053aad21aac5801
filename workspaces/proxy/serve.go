package proxy

import (
	"context"
	"net/http"
	"strings"
	"time"

	"weir/models"
)

// ownPath is the prefix of the paths that the proxy itself serves on every origin.
const (
	ownPath  = "/.weir/"
	openPath = ownPath + "open"
)

// New returns a Proxy, to be closed with Close.
func New(cfg Config) *Proxy {
	cfg.AppsDomain = canonicalDomain(cfg.AppsDomain, cfg.Secure)
	if cfg.Recheck <= 0 {
		cfg.Recheck = 8 * time.Second
	}
	ctx, stop := context.WithCancel(context.Background())
	p := &Proxy{
		cfg:       cfg,
		reserved:  reserve(cfg.PortalCookies),
		transport: newTransport(),
		flows:     newFlows(),
		activity:  newActivity(cfg.OnActivity),
		stop:      stop,
		stopped:   make(chan struct{}),

		uploadIdle: uploadIdle,
	}
	go p.recheckLoop(ctx)
	return p
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id, ok := p.Host(r.Host)
	switch {
	case !ok, !strings.HasPrefix(r.URL.Path, "/"):
		p.cfg.respond(w, r, models.NotFound("workspace"))
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace:
		p.cfg.respondStatus(w, r, http.StatusMethodNotAllowed, errMethod)
	case r.URL.Path == openPath:
		p.cfg.redeemOpening(w, r, id)
	case strings.HasPrefix(r.URL.Path, ownPath):
		p.cfg.respond(w, r, models.NotFound("page"))
	case r.URL.Path == logoutPath && bearer(r.Header) == "":
		p.cfg.leave(w, r, id)
	default:
		p.serveVisit(w, r, id)
	}
}

// serveVisit admits a visitor and forwards the request to the notebook.
func (p *Proxy) serveVisit(w http.ResponseWriter, r *http.Request, id int64) {
	credentials := p.cfg.credentials(r)
	if len(credentials) == 0 {
		p.cfg.refuse(w, r, id, errNoCredential)
		return
	}
	if credentials[0].Bearer == "" && !sameSite(r, p.cfg.origin(r, id)) {
		p.cfg.respond(w, r, errCrossSite)
		return
	}

	// The flow is registered before it is admitted, so that a Revoked between the
	// admission and the first byte cuts it.
	f := p.begin(w, r, id)
	defer f.end()
	if err := f.admit(credentials); err != nil {
		if f.ctx.Err() != nil { // the visitor left, or the flow was cut
			panic(http.ErrAbortHandler)
		}
		p.cfg.refuse(w, r, id, err)
		return
	}
	if !p.cfg.LeaseHeld() {
		p.cfg.respond(w, r, errLeaseLost)
		return
	}
	p.activity.touch(id, time.Now())
	defer func() { p.activity.touch(id, time.Now()) }()
	f.forward()
}
