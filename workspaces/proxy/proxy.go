package proxy

import (
	"context"
	"net/http"
	"time"
)

// Proxy serves the origins of all workspaces.
type Proxy struct {
	cfg       Config
	reserved  reservedCookies
	transport *transport
	flows     *flows
	activity  *activity
	stop      context.CancelFunc
	stopped   chan struct{}

	uploadIdle time.Duration // see the constant
}

// Close cuts all flows and rejects later ones.
func (p *Proxy) Close() {
	p.stop()
	p.flows.closeAll()
	<-p.stopped
	p.transport.close()
}

// Cut cuts all flows, also those that are being admitted.
func (p *Proxy) Cut() {
	for _, f := range p.flows.all() {
		f.cut()
	}
}

// Host returns the workspace of a Host header. There is exactly one spelling of
// each, because two spellings of an origin would have separate cookies.
func (p *Proxy) Host(host string) (workspace int64, ok bool) {
	return parseHost(host, p.cfg.AppsDomain)
}

// Origin returns the origin of a workspace for the visitor's browser.
func (p *Proxy) Origin(r *http.Request, workspace int64) string { return p.cfg.origin(r, workspace) }
