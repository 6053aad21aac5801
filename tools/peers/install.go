package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// tools are the programs that Weir is measured beside.
type tools struct {
	hub, proxy, nginx, caddy string
	versions                 map[string]string
}

// findTools finds them, and installs what is missing into the user's cache
// directory: the proxy from npm; JupyterHub from PyPI, unless a package of the
// system has it.
func findTools(ctx context.Context, weir string) (t tools, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return t, err
	}
	cache = filepath.Join(cache, "weir", "peers")
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return t, err
	}
	t.proxy = filepath.Join(cache, "node_modules", ".bin", "configurable-http-proxy")
	if err := install(ctx, t.proxy, "npm", "install", "--no-audit", "--no-fund", "--prefix", cache, "configurable-http-proxy@5"); err != nil {
		return t, err
	}
	if t.hub, err = exec.LookPath("jupyterhub"); err != nil {
		venv := filepath.Join(cache, "venv")
		t.hub = filepath.Join(venv, "bin", "jupyterhub")
		err = install(ctx, t.hub, "sh", "-c", `python3 -m venv "$1" && "$1/bin/pip" install --quiet jupyterhub`, "sh", venv)
		if err != nil {
			return t, err
		}
	}
	if t.caddy, err = exec.LookPath("caddy"); err != nil {
		return t, err
	}
	if t.nginx, err = exec.LookPath("nginx"); err != nil {
		t.nginx = "/usr/sbin/nginx" // where Debian has it, outside the PATH of most users
	}
	t.versions = map[string]string{}
	for name, argv := range map[string][]string{"Weir": {weir, "version"}, "JupyterHub": {t.hub, "--version"},
		"configurable-http-proxy": {t.proxy, "--version"}, "Node": {"node", "--version"},
		"nginx": {t.nginx, "-v"}, "Caddy": {t.caddy, "version"}} {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		output := cmd.Output
		if name == "nginx" { // which writes it to standard error
			output = cmd.CombinedOutput
		}
		out, err := output()
		if err != nil {
			return t, fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
		}
		t.versions[name], _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	}
	return t, nil
}

// install runs a command that makes a file, unless the file exists.
func install(ctx context.Context, file string, argv ...string) error {
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	fmt.Fprintln(os.Stderr, "Installing", filepath.Base(file))
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}
