package cluster

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Killed and paused programs do not respond, and come back with their data.
func TestFaults(t *testing.T) {
	c := start(t, Options{ControlPlaneOnly: true})
	do(t, c, http.MethodPost, "/api/v1/namespaces", map[string]any{"metadata": map[string]any{"name": "kept"}}, nil)
	answers := func(ctx context.Context) error {
		return c.Client().Do(ctx, http.MethodGet, "/api/v1/namespaces/kept", nil, nil)
	}
	silent := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second) // all of it passes while a program is paused
		defer cancel()
		err := answers(ctx)
		return err != nil && !apierrors.IsNotFound(err)
	}
	steps := []struct {
		what string
		step func(name string) error
		back func(name string) error
	}{
		{"killed", c.Kill, func(name string) error { return c.Restart(t.Context(), name) }},
		{"paused", c.Pause, c.Continue},
	}
	for _, fault := range steps {
		for _, name := range []string{APIServer, Etcd} {
			if err := fault.step(name); err != nil {
				t.Fatal(err)
			}
			if !silent() {
				t.Errorf("with %s %s it responds", name, fault.what)
			}
			if err := fault.back(name); err != nil {
				t.Fatal(err)
			}
			eventually(t, "it answers again", func() bool { return answers(t.Context()) == nil })
		}
	}
	if err := c.Restart(t.Context(), APIServer); err == nil || !strings.Contains(err.Error(), "kill it first") {
		t.Errorf("restarting what runs: %v", err)
	}
	for range 2 {
		if err := c.Kill(Scheduler); err != nil {
			t.Error(err)
		}
	}
	if err := c.Pause(Scheduler); err == nil {
		t.Error("what has ended was paused")
	}
	for name, says := range map[string]string{KWOK: "no program", "containerd": "cannot be restarted alone"} {
		if err := c.Kill(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("killing %s: %v", name, err)
		}
	}
	if err := new(Cluster).Kill(Etcd); err == nil {
		t.Error("a fault was done to a cluster that is not ours")
	}
}
