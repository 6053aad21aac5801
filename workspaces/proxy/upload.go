package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// uploadIdle is how long a visitor may pause an upload.
const uploadIdle = 5 * time.Minute

// upload is the body of a request.
type upload struct {
	io.ReadCloser
	f *flow
}

func (u upload) Read(b []byte) (int, error) {
	u.f.setReadDeadline(time.Now().Add(u.f.p.uploadIdle))
	n, err := u.ReadCloser.Read(b)
	switch {
	case err == io.EOF:
		u.f.received.Store(true)
		u.f.setReadDeadline(time.Time{}) // what follows shows whether the visitor is still there
	case errors.Is(err, os.ErrDeadlineExceeded):
		u.f.stall()
	}
	if lost := u.f.checkLease(); lost != nil {
		return 0, lost
	}
	return n, err
}

// Close interrupts a Read that waits for the visitor. Nothing can be read afterwards.
func (u upload) Close() error {
	u.f.mu.Lock()
	defer u.f.mu.Unlock()
	u.f.unread = true
	return http.NewResponseController(u.f.w).SetReadDeadline(time.Unix(1, 0))
}

// setReadDeadline bounds the next Read of the visitor's upload, unless it has been
// interrupted.
func (f *flow) setReadDeadline(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.ended && !f.unread {
		http.NewResponseController(f.w).SetReadDeadline(t)
	}
}

// stall records that the visitor has paused the upload for too long, unless it has been
// interrupted.
func (f *flow) stall() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stalled.Store(!f.ended && !f.unread)
}

// receiving reports whether a part of the upload has not been received.
func (f *flow) receiving() bool { return f.uploads && !f.received.Load() }

// closeUnlessReceived lets the connection end with the response if the upload goes on:
// its rest must not become the next request.
func (f *flow) closeUnlessReceived() {
	if f.receiving() {
		f.w.Header().Set("Connection", "close")
	}
}
