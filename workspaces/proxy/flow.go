package proxy

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/models"
)

// flow is one request in flight.
type flow struct {
	p         *Proxy
	w         http.ResponseWriter
	r         *http.Request // as the visitor sent it
	workspace int64
	beganAt   time.Time
	ctx       context.Context
	cancel    context.CancelFunc

	uploads  bool        // the request has a body
	received atomic.Bool // all of it
	stalled  atomic.Bool // the visitor has paused it for too long

	mu         sync.Mutex
	ended      bool
	unread     bool // no more of the upload is read
	admitted   bool
	credential Credential // the one that was admitted
	target     Target
	closers    []io.Closer // both ends of a WebSocket
}

// begin registers a flow, so that Revoked can cut it.
func (p *Proxy) begin(w http.ResponseWriter, r *http.Request, workspace int64) *flow {
	f := &flow{p: p, w: w, r: r, workspace: workspace, beganAt: time.Now()}
	f.ctx, f.cancel = context.WithCancel(r.Context())
	if !p.flows.register(f) {
		f.cut()
	}
	return f
}

// admit calls the gate, and again if something was revoked meanwhile.
func (f *flow) admit(credentials []Credential) error {
	for {
		epoch := f.p.flows.epoch.Load()
		c, target, err := f.tryCredentials(credentials)
		if err != nil || f.recordAdmission(epoch, c, target) {
			return err
		}
	}
}

// tryCredentials tries each credential until one is admitted.
func (f *flow) tryCredentials(credentials []Credential) (c Credential, t Target, refusal error) {
	for _, c := range credentials {
		t, err := f.p.cfg.Gate.Admit(f.ctx, f.workspace, c)
		if err == nil {
			return c, t, nil
		}
		// The most specific error is one that is not about the credential.
		if refusal == nil || models.KindOf(refusal) == models.KindUnauthenticated {
			refusal = err
		}
	}
	return c, t, refusal
}

// recordAdmission records an admission of an epoch. It returns false if something
// was revoked since: the admission may be older than the revocation, which did not
// check this flow.
func (f *flow) recordAdmission(epoch int64, c Credential, t Target) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.p.flows.epoch.Load() != epoch {
		return false
	}
	f.admitted, f.credential, f.target = true, c, t
	return true
}

// closeOnCut closes c when the flow is cut, or at once if it has ended.
func (f *flow) closeOnCut(c io.Closer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		c.Close()
		return context.Canceled
	}
	f.closers = append(f.closers, c)
	return nil
}

// cut ends the flow. When it returns, no more bytes are transferred.
func (f *flow) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended {
		return
	}
	f.ended = true
	f.cancel()
	for _, c := range f.closers {
		c.Close()
	}
	// Interrupt reads from and writes to the visitor.
	rc := http.NewResponseController(f.w)
	past := time.Unix(1, 0)
	rc.SetReadDeadline(past)
	rc.SetWriteDeadline(past)
}

// end unregisters a flow when its request is done.
func (f *flow) end() {
	f.p.flows.unregister(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.cancel()
}

// admission returns the admission of a flow, if there is one.
func (f *flow) admission() (c Credential, t Target, admitted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.credential, f.target, f.admitted
}

// checkLease cuts the flow, with an error, when this server has lost its lease.
func (f *flow) checkLease() error {
	if f.p.cfg.LeaseHeld() {
		return nil
	}
	f.cut()
	return errLeaseLost
}

// write writes b unless this server has lost its lease.
func (f *flow) write(w io.Writer, b []byte) (int, error) {
	if err := f.checkLease(); err != nil {
		return 0, err
	}
	return w.Write(b)
}

// flows are all current flows.
type flows struct {
	epoch  atomic.Int64 // counts revocations
	mu     sync.Mutex
	closed bool
	live   map[*flow]bool
}

func newFlows() *flows { return &flows{live: map[*flow]bool{}} }

// register returns false after closeAll.
func (fs *flows) register(f *flow) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return false
	}
	fs.live[f] = true
	return true
}

func (fs *flows) unregister(f *flow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.live, f)
}

func (fs *flows) all() []*flow {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return slices.Collect(maps.Keys(fs.live))
}

func (fs *flows) closeAll() {
	fs.mu.Lock()
	fs.closed = true
	fs.mu.Unlock()
	for _, f := range fs.all() {
		f.cut()
	}
}
