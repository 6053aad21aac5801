package proxy

import (
	"crypto/tls"
	"log/slog"
	"net/http"
	"testing"
)

func TestHost(t *testing.T) {
	for host, want := range map[string]int64{
		"ws-12.localhost:8080":                   12,
		"ws-9223372036854775807.localhost:8080":  9223372036854775807,
		"ws-9223372036854775808.localhost:8080":  0,
		"ws-99999999999999999999.localhost:8080": 0,
		"ws-0.localhost:8080":                    0,
		"ws--1.localhost:8080":                   0,
		"ws-+1.localhost:8080":                   0,
		"ws-01.localhost:8080":                   0,
		"ws-1x.localhost:8080":                   0,
		"ws-.localhost:8080":                     0,
		"ws-12.localhost":                        0,
		"ws-12.localhost:80":                     0,
		"ws-12.localhost:8080.":                  0,
		"ws-12.localhost.:8080":                  0,
		"WS-12.localhost:8080":                   0,
		"ws-12.LOCALHOST:8080":                   0,
		"a.ws-12.localhost:8080":                 0,
		"ws-12.a.localhost:8080":                 0,
		"ws-12localhost:8080":                    0,
		"localhost:8080":                         0,
		"":                                       0,
	} {
		got, ok := parseHost(host, domain)
		if got != want || ok != (want != 0) {
			t.Errorf("parseHost(%q) = %d, %v; want %d", host, got, ok, want)
		}
	}
}

func FuzzHost(f *testing.F) {
	for _, seed := range []string{"ws-12.localhost:8080", "ws-0.localhost:8080", "ws--1.localhost:8080", "ws-١.localhost:8080", ""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, host string) {
		id, ok := parseHost(host, domain)
		if ok && (id <= 0 || hostOf(id, domain) != host) {
			t.Errorf("%q was read as %d", host, id)
		}
		if !ok && id != 0 {
			t.Errorf("%q was refused, but as %d", host, id)
		}
	})
}

func TestOrigin(t *testing.T) {
	for _, c := range []struct {
		domain string
		secure bool
		tls    bool
		want   string
	}{
		{"localhost:8080", false, false, "http://ws-12.localhost:8080"},
		{"Apps.Example.com:80", false, false, "http://ws-12.apps.example.com"},
		{"apps.example.com:443", true, false, "https://ws-12.apps.example.com"},
		{"apps.example.com", false, true, "https://ws-12.apps.example.com"},
	} {
		p := New(Config{AppsDomain: c.domain, Secure: c.secure, Logger: slog.New(slog.DiscardHandler)})
		defer p.Close()
		r := &http.Request{}
		if c.tls {
			r.TLS = &tls.ConnectionState{}
		}
		if got := p.Origin(r, 12); got != c.want {
			t.Errorf("Origin of %+v = %s", c, got)
		}
	}
}
