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

// flow is one request on its way, for as long as it lasts.
type flow struct {
	p         *Proxy
	w         http.ResponseWriter
	r         *http.Request // as the visitor sent it
	workspace int64
	began     time.Time
	ctx       context.Context
	cancel    context.CancelFunc

	mu         sync.Mutex
	over       bool
	admitted   bool
	credential Credential // the one that was admitted
	target     Target
	owned      []io.Closer // both ends of a WebSocket
}

// begin makes a flow that Revoked will find.
func (p *Proxy) begin(w http.ResponseWriter, r *http.Request, workspace int64) *flow {
	f := &flow{p: p, w: w, r: r, workspace: workspace, began: time.Now()}
	f.ctx, f.cancel = context.WithCancel(r.Context())
	if !p.flows.add(f) {
		f.cut()
	}
	return f
}

// admit asks the gate, again when something was revoked while it answered.
func (f *flow) admit(credentials []Credential) error {
	for {
		round := f.p.flows.round.Load()
		c, target, err := f.ask(credentials)
		if err != nil || f.enter(round, c, target) {
			return err
		}
	}
}

// ask tries each credential until one is good.
func (f *flow) ask(credentials []Credential) (c Credential, t Target, refusal error) {
	for _, c := range credentials {
		t, err := f.p.cfg.Gate.Admit(f.ctx, f.workspace, c)
		if err == nil {
			return c, t, nil
		}
		// Of several refusals the one that knows the visitor says most.
		if refusal == nil || isCredentialRefusal(refusal) {
			refusal = err
		}
	}
	return c, t, refusal
}

// enter notes an admission that was asked for in a round of revocations. It is
// false when the next one has begun: that one may have looked at this flow
// already, and what the gate said may be older.
func (f *flow) enter(round int64, c Credential, t Target) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.p.flows.round.Load() != round {
		return false
	}
	f.admitted, f.credential, f.target = true, c, t
	return true
}

func isCredentialRefusal(err error) bool {
	return models.KindOf(err) == models.KindUnauthenticated
}

// own makes c close when the flow is cut, or at once if it was.
func (f *flow) own(c io.Closer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		c.Close()
		return context.Canceled
	}
	f.owned = append(f.owned, c)
	return nil
}

// cut ends the flow from outside. When it returns, no more bytes pass.
func (f *flow) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	f.cancel()
	for _, c := range f.owned {
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
	f.p.flows.remove(f)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	f.cancel()
}

// pass is what the gate said of a flow.
func (f *flow) pass() (c Credential, t Target, admitted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.credential, f.target, f.admitted
}

// mayPass cuts the flow, and says so, when this server may pass nothing on.
func (f *flow) mayPass() error {
	if f.p.cfg.Holds() {
		return nil
	}
	f.cut()
	return errApart
}

// flows are all that are under way, by workspace.
type flows struct {
	round  atomic.Int64 // counts revocations
	mu     sync.Mutex
	closed bool
	live   map[int64]map[*flow]struct{}
}

func newFlows() *flows { return &flows{live: map[int64]map[*flow]struct{}{}} }

// add is false after close.
func (fs *flows) add(f *flow) bool {
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

func (fs *flows) remove(f *flow) {
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

func (fs *flows) close() {
	fs.mu.Lock()
	fs.closed = true
	fs.mu.Unlock()
	for _, f := range fs.all() {
		f.cut()
	}
}
