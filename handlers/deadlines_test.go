package handlers

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// deadlines is a response whose connection keeps the deadline for reading.
type deadlines struct {
	*httptest.ResponseRecorder
	set  int
	last time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set++
	d.last = t
	return nil
}

// Work on a request is not canceled at the deadline for reading it, which is over with the body; it is
// far away if there is one that is not read.
func TestReadDeadlineIsExtended(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		method, path, body string
		enough             func(time.Time) bool
	}{
		{"POST", "/departments", `{"name":"Speech"}`, time.Time.IsZero},
		{"GET", "/projects", "", time.Time.IsZero},
		{"GET", "/projects", "{}", func(last time.Time) bool { return time.Until(last) > longestWork/2 }},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, apiPrefix+c.path, strings.NewReader(c.body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+w.admin)
		d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		w.app.ServeHTTP(d, r)
		if d.Code >= http.StatusBadRequest || d.set == 0 || !c.enough(d.last) {
			t.Errorf("%s %s: %d; %d deadlines, the last %v", c.method, c.path, d.Code, d.set, d.last)
		}
	}
}
