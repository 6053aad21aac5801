package proxy

import (
	"context"
	"io"
	"net/http"
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

	mu         sync.Mutex
	ended      bool
	admitted   bool
	credential Credential // the one that was admitted
	target     Target
	closers    []io.Closer // both ends of a WebSocket
}

// begin makes a flow that Revoked will find.
func (p *Proxy) begin(w http.ResponseWriter, r *http.Request, workspace int64) *flow {
	f := &flow{p: p, w: w, r: r, workspace: workspace, beganAt: time.Now()}
	f.ctx, f.cancel = context.WithCancel(r.Context())
	if !p.flows.register(f) {
		f.cut()
	}
	return f
}

// admit asks the gate, again when something was revoked while it answered.
func (f *flow) admit(credentials []Credential) error {
	for {
		epoch := f.p.flows.epoch.Load()
		c, target, err := f.tryCredentials(credentials)
		if err != nil || f.recordAdmission(epoch, c, target) {
			return err
		}
	}
}

// tryCredentials tries each credential until one is good.
func (f *flow) tryCredentials(credentials []Credential) (c Credential, t Target, refusal error) {
	for _, c := range credentials {
		t, err := f.p.cfg.Gate.Admit(f.ctx, f.workspace, c)
		if err == nil {
			return c, t, nil
		}
		// Of several refusals one that is not about the credential says most.
		if refusal == nil || isCredentialRefusal(refusal) {
			refusal = err
		}
	}
	return c, t, refusal
}

// recordAdmission keeps an admission of an epoch. It is false when something
// was revoked since: that may have missed this flow, and the admission may be
// older.
func (f *flow) recordAdmission(epoch int64, c Credential, t Target) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.p.flows.epoch.Load() != epoch {
		return false
	}
	f.admitted, f.credential, f.target = true, c, t
	return true
}

func isCredentialRefusal(err error) bool {
	return models.KindOf(err) == models.KindUnauthenticated
}

// closeOnCut makes c close when the flow is cut, or at once if it was.
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

// cut ends the flow from outside. When it returns, no more bytes pass.
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
	// Neither may a reader or writer that waits for the visitor go on waiting.
	rc := http.NewResponseController(f.w)
	past := time.Unix(1, 0)
	rc.SetReadDeadline(past)
	rc.SetWriteDeadline(past)
}

// end is the flow's own end.
func (f *flow) end() {
	f.p.flows.unregister(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	f.cancel()
}

// admission is how the gate has admitted a flow, if it has.
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

// flows are all that are under way, by workspace.
type flows struct {
	epoch  atomic.Int64 // counts revocations
	mu     sync.Mutex
	closed bool
	live   map[int64]map[*flow]struct{}
}

func newFlows() *flows { return &flows{live: map[int64]map[*flow]struct{}{}} }

// register is false after close.
func (fs *flows) register(f *flow) bool {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if fs.closed {
		return false
	}
	if fs.live[f.workspace] == nil {
		fs.live[f.workspace] = map[*flow]struct{}{}
	}
	fs.live[f.workspace][f] = struct{}{}
	return true
}

func (fs *flows) unregister(f *flow) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	delete(fs.live[f.workspace], f)
	if len(fs.live[f.workspace]) == 0 {
		delete(fs.live, f.workspace)
	}
}

func (fs *flows) all() []*flow {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	var out []*flow
	for _, of := range fs.live {
		for f := range of {
			out = append(out, f)
		}
	}
	return out
}

func (fs *flows) closeAll() {
	fs.mu.Lock()
	fs.closed = true
	fs.mu.Unlock()
	for _, f := range fs.all() {
		f.cut()
	}
}
