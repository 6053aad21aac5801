package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
)

// nginxConfig is one worker with kept connections to the notebook's socket.
const nginxConfig = `daemon off;
master_process off;
pid %[1]s/nginx.pid;
error_log stderr warn;
events { worker_connections 1024; }
http {
	access_log off;
	client_body_temp_path %[1]s/nginx-body;
	proxy_temp_path %[1]s/nginx-proxy;
	fastcgi_temp_path %[1]s/nginx-fastcgi;
	uwsgi_temp_path %[1]s/nginx-uwsgi;
	scgi_temp_path %[1]s/nginx-scgi;
	keepalive_requests 1000000000;
	upstream notebook {
		server unix:%[2]s;
		keepalive 64;
		keepalive_requests 1000000000;
	}
	server {
		listen 127.0.0.1:%[3]d;
		location / {
			proxy_pass http://notebook;
			proxy_http_version 1.1;
			proxy_set_header Host $http_host;
			proxy_set_header Connection "";
		}
	}
}
`

const caddyConfig = `{
	admin off
	auto_https off
}
http://127.0.0.1:%[2]d, http://localhost:%[2]d {
	bind 127.0.0.1
	reverse_proxy unix/%[1]s
}
`

// plainProxies are proxies in front of the notebook's socket that check nothing.
func plainProxies(ctx context.Context, ps *processes, t tools, direct candidate) (list []candidate, err error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	nginx, caddy := filepath.Join(ps.dir, "nginx.conf"), filepath.Join(ps.dir, "Caddyfile")
	for _, p := range []struct {
		name, config, text string
		port               int
		argv               []string
	}{
		{nameNginx, nginx, fmt.Sprintf(nginxConfig, ps.dir, direct.address, ports[0]), ports[0], []string{t.nginx, "-p", ps.dir, "-c", nginx}},
		{nameCaddy, caddy, fmt.Sprintf(caddyConfig, direct.address, ports[1]), ports[1],
			[]string{t.caddy, "run", "--config", caddy, "--adapter", "caddyfile"}},
	} {
		if err := os.WriteFile(p.config, []byte(p.text), 0o600); err != nil {
			return nil, err
		}
		server, err := ps.start(filepath.Base(p.argv[0]), []string{"XDG_DATA_HOME=" + ps.dir, "XDG_CONFIG_HOME=" + ps.dir}, p.argv...)
		if err != nil {
			return nil, err
		}
		if err := server.awaitHTTP(ctx, fmt.Sprintf("http://127.0.0.1:%d%s", p.port, kernelsPath), http.StatusOK); err != nil {
			return nil, err
		}
		list = append(list, through(direct, p.name, p.port, server))
	}
	return list, nil
}

// through is the request to the notebook through a proxy on a port.
func through(direct candidate, name string, port int, proxy *process) candidate {
	c := direct
	c.Name, c.network, c.address = name, "tcp", fmt.Sprintf("127.0.0.1:%d", port)
	c.request = rawRequest("http://localhost:"+strconv.Itoa(port), kernelsPath, script, "Cookie: "+notebookCookies)
	c.servers = append([]int{proxy.pid()}, direct.servers...)
	return c
}
