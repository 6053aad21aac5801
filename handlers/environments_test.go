package handlers

import (
	"strings"
	"testing"

	"weir/models"
)

// The catalog says of an installation that could not be checked that this is so, and the
// launch page offers it.
func TestUncheckedEnvironmentOnPages(t *testing.T) {
	w := newWorld(t)
	key := "/opt:jupyter-lab"
	err := w.app.Catalog.Register(t.Context(), []models.Environment{{DiscoveredKey: &key, Name: "JupyterLab in /opt/bin", Language: "python",
		Command: []string{"/opt/bin/jupyter-lab"}, DefaultPath: "/lab"}})
	if err != nil {
		t.Fatal(err)
	}
	manager, _ := w.staff()
	if page := manager.page(200, "GET", "/environments"); !strings.Contains(page, "Weir repeats the check within a minute") {
		t.Errorf("the page does not say so:\n%s", page)
	}
	if page := manager.page(200, "GET", "/launch?project_id="+id(w.project)); !strings.Contains(page, "JupyterLab in /opt/bin") {
		t.Errorf("it cannot be launched:\n%s", page)
	}
}
