package main

import (
	"net/url"
	"strings"
	"testing"

	"weir/models"
)

// Workspaces get the address of the host, and none starts while it is not known.
func TestVariablesOfWorkspaces(t *testing.T) {
	w := models.Workspace{ID: 7, Secret: "secret"}
	if env, err := (insideEndpoint{}).variables(t.Context(), w); err != nil || len(env) != 0 {
		t.Errorf("without a listener: %v, %v", env, err)
	}
	l, err := listenTCP(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	at := insideEndpoint{listener: l, url: &url.URL{Scheme: "http", Host: "localhost:8081"}}
	env, err := at.variables(t.Context(), w)
	if err != nil || env["WEIR_API"] != "http://127.0.0.1:8081" && env["WEIR_API"] != "http://[::1]:8081" || !strings.HasPrefix(env["WEIR_API_TOKEN"], "weirw_7_") {
		t.Errorf("%v, %v", env, err)
	}
	at.url.Host = "weir.invalid:8081"
	if _, err := at.variables(t.Context(), w); models.KindOf(err) != models.KindUnavailable || !strings.Contains(err.Error(), "weir.invalid") {
		t.Errorf("an unknown host: %v", err)
	}
}
