package handlers

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// The message of a change stands on the page that the redirect leads to, whatever other
// tabs and scripts read meanwhile, once, and not after a minute.
func TestFlash(t *testing.T) {
	w := newWorld(t)
	pass := w.stopClock()
	root := w.visitor("ada@example.org", true)
	const message = "Department Speech created."
	shown := func(path string, headers ...string) bool {
		t.Helper()
		page := w.visit(http.MethodGet, path, nil, append(headers, "Cookie", root.cookie)...)
		if page.Code != http.StatusOK {
			t.Fatalf("GET %s: %d", path, page.Code)
		}
		return strings.Contains(page.Body.String(), message)
	}
	root.page(303, "POST", "/departments", "name", "Speech")
	switch {
	case shown("/"):
		t.Error("another tab takes the message")
	case shown("/departments", "HX-Request", "true"):
		t.Error("a script takes the message")
	case !shown("/departments?sort=name"):
		t.Error("the page of the redirect does not show the message")
	case shown("/departments"):
		t.Error("the message is shown twice")
	}
	root.page(303, "POST", "/departments", "name", "Speech 2")
	pass(2 * time.Minute)
	if page := root.page(200, "GET", "/departments"); strings.Contains(page, "Department Speech 2 created.") {
		t.Error("an old message is shown")
	}
}
