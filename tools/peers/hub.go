package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// hubConfig is the smallest configuration that lets a person sign in.
const hubConfig = `c = get_config()  # noqa
c.JupyterHub.bind_url = "http://127.0.0.1:%[1]d"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:%[2]d"
c.JupyterHub.db_url = "sqlite:///%[4]s/hub.sqlite"
c.JupyterHub.cookie_secret_file = "%[4]s/hub-secret"
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.spawner_class = "simple"
c.Authenticator.allowed_users = {"ada"}
c.SimpleLocalProcessSpawner.home_dir_template = "%[4]s/hub-home"
c.Spawner.args = ["--allow-root"]
c.JupyterHub.services = [{"name": "peers", "api_token": "` + hubToken + `"}]
c.JupyterHub.load_roles = [{"name": "peers", "services": ["peers"], "scopes": ["admin:users", "admin:servers", "access:servers"]}]
c.ConfigurableHTTPProxy.should_start = False
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:%[3]d"
c.ConfigurableHTTPProxy.auth_token = "` + proxyToken + `"
`

// hubToken starts and stops servers.
const hubToken = "peers-start-and-stop-servers"

// proxyToken lets JupyterHub set the routes of its proxy.
const proxyToken = "peers"

// startProxy starts configurable-http-proxy and returns its port and that of its
// API.
func startProxy(ctx context.Context, ps *processes, name, program, target string) (p *process, port, apiPort int, err error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, 0, 0, err
	}
	first := http.StatusNotFound // JupyterHub sets the routes later
	argv := []string{program, "--ip", "127.0.0.1", "--port", strconv.Itoa(ports[0]), "--api-ip", "127.0.0.1", "--api-port",
		strconv.Itoa(ports[1]), "--log-level", "warn"}
	if target != "" {
		argv, first = append(argv, "--default-target", target), http.StatusOK
	}
	p, err = ps.start(name, []string{"CONFIGPROXY_AUTH_TOKEN=" + proxyToken, "NODE_ENV=production"}, argv...)
	if err != nil {
		return nil, 0, 0, err
	}
	return p, ports[0], ports[1], p.awaitHTTP(ctx, fmt.Sprintf("http://127.0.0.1:%d%s", ports[0], kernelsPath), first)
}

// notebookProxy starts configurable-http-proxy in front of the stub's port: to a
// socket it opens a connection for each request, and closes the client's.
func notebookProxy(ctx context.Context, ps *processes, program string, direct candidate) (c candidate, err error) {
	p, port, _, err := startProxy(ctx, ps, "proxy", program, "http://"+direct.address)
	if err != nil {
		return c, err
	}
	return through(direct, nameProxy, port, p), nil
}

// hubPage starts JupyterHub with its proxy, signs in and returns its home page.
func hubPage(ctx context.Context, ps *processes, t tools) (c candidate, err error) {
	proxy, port, apiPort, err := startProxy(ctx, ps, "hub-proxy", t.proxy, "")
	if err != nil {
		return c, err
	}
	hubPorts, err := freePorts(1)
	if err != nil {
		return c, err
	}
	config := filepath.Join(ps.dir, "hub.py")
	if err := os.WriteFile(config, fmt.Appendf(nil, hubConfig, port, hubPorts[0], apiPort, ps.dir), 0o600); err != nil {
		return c, err
	}
	hub, err := ps.start("hub", nil, t.hub, "--config", config)
	if err != nil {
		return c, err
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if err := hub.awaitHTTP(ctx, "http://"+address+"/hub/login", http.StatusOK); err != nil {
		return c, err
	}
	b, err := newBrowser(address)
	if err != nil {
		return c, err
	}
	origin := "http://localhost:" + strconv.Itoa(port)
	if err := signInToHub(ctx, b, origin); err != nil {
		return c, err
	}
	if c, err = pageOf(ctx, b, nameHub, origin, "/hub/home", `user: "ada"`); err != nil {
		return c, err
	}
	c.servers = []int{hub.pid(), proxy.pid()}
	return c, nil
}

// signInToHub submits the form, with the token that newer versions require.
func signInToHub(ctx context.Context, b *browser, origin string) error {
	if _, err := b.get(ctx, origin+"/hub/login"); err != nil {
		return err
	}
	form := url.Values{"username": {"ada"}, "password": {"ada"}}
	cookies, err := b.cookies(origin + "/hub/login")
	if err != nil {
		return err
	}
	for pair := range strings.SplitSeq(strings.TrimPrefix(cookies, "Cookie: "), "; ") {
		if token, ok := strings.CutPrefix(pair, "_xsrf="); ok {
			form.Set("_xsrf", token)
		}
	}
	return b.post(ctx, origin+"/hub/login?next=/hub/home", form)
}
