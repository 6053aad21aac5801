package files

import (
	"context"
	"slices"
	"sync"
	"time"

	"weir/storage/beneath"
)

// transfers are the downloads in progress.
type transfers struct {
	mu   sync.Mutex
	open map[*Transfer]struct{}
}

// recheckAfter is how long a download goes on until its right is checked again.
const recheckAfter = 5 * time.Second

// Transfer is a download in progress. It ends when its right is revoked.
type Transfer struct {
	all   *transfers
	v     *view
	paths []string
	keys  []string

	mu      sync.Mutex
	checked time.Time // when the right was last checked
	cut     bool
	closer  func() // stops what is being sent; nil: nothing yet
}

// begin registers a download of v.
func (t *transfers) begin(v *view, paths ...string) *Transfer {
	n := &Transfer{all: t, v: v, paths: paths, keys: v.revocationKeys()}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.open == nil {
		t.open = map[*Transfer]struct{}{}
	}
	t.open[n] = struct{}{}
	return n
}

func (t *Transfer) end() {
	t.all.mu.Lock()
	defer t.all.mu.Unlock()
	delete(t.all.open, t)
}

// Start checks the right again, now that revocations reach the transfer, and names what
// stops it. It reports false if the right is gone.
func (t *Transfer) Start(ctx context.Context, stop func()) bool {
	t.mu.Lock()
	t.closer, t.checked = stop, t.v.Store.Now()
	t.mu.Unlock()
	if !t.allowed(ctx) {
		t.stop()
	}
	return !t.Cut()
}

// Ends reports whether the transfer must send nothing more, and checks that from time to
// time: the end of a membership is no event.
func (t *Transfer) Ends(ctx context.Context) bool {
	now := t.v.Store.Now()
	t.mu.Lock()
	due := now.Sub(t.checked) >= recheckAfter
	if due {
		t.checked = now
	}
	t.mu.Unlock()
	if due && !t.allowed(ctx) {
		t.stop()
	}
	return t.Cut()
}

// Cut reports whether the transfer must send nothing more.
func (t *Transfer) Cut() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cut
}

func (t *Transfer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cut = true; t.closer != nil {
		t.closer()
	}
}

func (t *Transfer) allowed(ctx context.Context) bool {
	now, err := t.v.refresh(ctx)
	return err == nil && !slices.ContainsFunc(t.paths, func(p string) bool { return now.checkStillDownload(t.v, p) != nil })
}

// Revoked implements [models.RevocationListener]: it waits for the changes that have
// checked their rights, and cuts downloads that would not be allowed now.
func (s *Service) Revoked(ctx context.Context, keys []string) {
	affected := s.transfers.with(keys)
	for _, t := range affected {
		if !t.allowed(ctx) {
			t.stop()
		}
	}
	s.effects.revoke(ctx, keys)
}

// Cut implements [models.RevocationListener].
func (s *Service) Cut() {
	for _, t := range s.transfers.with(nil) {
		t.stop()
	}
}

// with lists the transfers that depend on one of the keys; nil: all.
func (t *transfers) with(keys []string) (list []*Transfer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n := range t.open {
		if keys == nil || slices.ContainsFunc(n.keys, func(k string) bool { return slices.Contains(keys, k) }) {
			list = append(list, n)
		}
	}
	return list
}

// auditPeriod is for how long further downloads of a file by a user are not audited.
const auditPeriod = time.Hour

// maxDownloads bounds how many downloads are remembered.
const maxDownloads = 10_000

// download is a file with its content, and who downloads it.
type download struct {
	user       int64
	path, etag string
}

// downloads are those that were audited, with the times.
type downloads struct {
	mu   sync.Mutex
	last map[download]time.Time
}

// isNew reports whether a download is to be audited, and remembers it: browsers and
// programs download a file in many ranges.
func (d *downloads) isNew(v *view, path string, i beneath.Info) bool {
	one, now := download{v.actor.User.ID, path, etag(i)}, v.Store.Now()
	d.mu.Lock()
	defer d.mu.Unlock()
	if at, ok := d.last[one]; ok && now.Sub(at) < auditPeriod {
		return false
	}
	if d.last == nil || len(d.last) >= maxDownloads {
		d.last = map[download]time.Time{}
	}
	d.last[one] = now
	return true
}
