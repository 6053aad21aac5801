package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// starts of a workspace without a GPU, in an environment that Weir has found, and of a server of
// JupyterHub.
func starts(ctx context.Context, w *weir, hub string) ([]candidate, error) {
	environment, err := w.jupyter(ctx)
	if err != nil {
		return nil, err
	}
	email := emailOf(0, memberCount-1) // who has nothing running
	member, err := w.tokenOf(ctx, email, "starts")
	if err != nil {
		return nil, err
	}
	var launched id
	ofWeir := jupyterStart{
		begin: func(ctx context.Context) (*http.Request, error) {
			err := member.call(ctx, "POST", "/workspaces", fields{"project_id": w.project, "environment_id": environment,
				"request": fields{"cpu_milli": 8000, "memory_mib": 2048}}, &launched)
			if err != nil {
				return nil, err
			}
			host := fmt.Sprintf("ws-%d.%s", launched.ID, strings.TrimPrefix(w.origin, "http://"))
			return statusRequest(ctx, w.address, host, "/api/status", "Bearer "+member.token)
		},
		end: func(ctx context.Context) error {
			if err := member.call(ctx, "POST", fmt.Sprintf("/workspaces/%d/stop", launched.ID), nil, nil); err != nil {
				return err
			}
			return w.awaitState(ctx, launched.ID, "stopped")
		},
	}
	server := api{"http://" + hub + "/hub/api", hubToken}
	ofHub := jupyterStart{
		begin: func(ctx context.Context) (*http.Request, error) {
			if err := server.call(ctx, "POST", "/users/ada/server", nil, nil); err != nil {
				return nil, err
			}
			return statusRequest(ctx, hub, "localhost", "/user/ada/api/status", "Bearer "+hubToken)
		},
		end: func(ctx context.Context) error {
			if err := server.call(ctx, "DELETE", "/users/ada/server", nil, nil); err != nil {
				return err
			}
			return eventually(ctx, ending, func() error {
				var ada struct{ Server, Pending *string }
				if err := server.call(ctx, "GET", "/users/ada", nil, &ada); err != nil {
					return err
				}
				if ada.Server != nil || ada.Pending != nil {
					return errors.New("JupyterHub's server has not ended yet")
				}
				return nil
			})
		},
	}
	return []candidate{{Name: nameHubRun, start: &ofHub}, {Name: nameStart, start: &ofWeir}}, nil
}

// statusRequest reads the status of a Jupyter at a host behind the proxy at an address.
func statusRequest(ctx context.Context, address, host, path, authorization string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, "GET", "http://"+address+path, nil)
	if err != nil {
		return nil, err
	}
	req.Host = host
	req.Header.Set("Authorization", authorization)
	return req, nil
}

// jupyter returns an environment that Weir has found on this machine, without VS Code.
func (w *weir) jupyter(ctx context.Context) (int64, error) {
	var found struct {
		Items []struct {
			id
			Discovered  bool
			Unavailable string
			DefaultPath string `json:"default_path"`
		}
	}
	if err := w.admin.call(ctx, "GET", "/environments", nil, &found); err != nil {
		return 0, err
	}
	for _, e := range found.Items {
		if e.Discovered && e.Unavailable == "" && e.DefaultPath != "/code/" {
			return e.ID, nil
		}
	}
	return 0, errors.New("no Jupyter was found on this machine")
}
