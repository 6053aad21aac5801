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

// A request has as long for its work as that takes: the deadline for reading it is over then, which
// would cancel it.
func TestRequestWorksAsLongAsItTakes(t *testing.T) {
	w := newWorld(t)
	r := httptest.NewRequestWithContext(t.Context(), "POST", apiPrefix+"/departments", strings.NewReader(`{"name":"Speech"}`))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+w.admin)
	d := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	w.app.ServeHTTP(d, r)
	if d.Code != http.StatusCreated || d.set == 0 || !d.last.IsZero() {
		t.Errorf("%d; %d deadlines, the last %v", d.Code, d.set, d.last)
	}
}
