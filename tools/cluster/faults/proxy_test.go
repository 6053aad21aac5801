package faults

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// upstream is an API server for tests that counts completed requests.
type upstream struct {
	*httptest.Server
	done atomic.Int64
}

func newUpstream(t *testing.T) *upstream {
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if IsWatch(r) {
			_, _ = io.WriteString(w, "first\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return
		}
		u.done.Add(1)
		_, _ = io.WriteString(w, "done")
	}))
	t.Cleanup(u.Close)
	return u
}

func newProxy(t *testing.T, u *upstream, seed uint64) (*Proxy, func(method, path string) (int, string, error)) {
	t.Helper()
	p, err := New(&rest.Config{Host: u.URL}, seed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	return p, func(method, path string) (int, string, error) {
		req, err := http.NewRequestWithContext(t.Context(), method, p.Config().Host+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0, "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return resp.StatusCode, string(b), err
	}
}

func TestFaultsOfRequests(t *testing.T) {
	u := newUpstream(t)
	p, ask := newProxy(t, u, 1)
	if code, body, err := ask("GET", "/a"); code != 200 || body != "done" || err != nil {
		t.Errorf("without rules: %d %q %v", code, body, err)
	}
	p.Set(Rule{Match: IsChange, Percent: 100, Status: http.StatusTooManyRequests})
	if code, _, err := ask("PATCH", "/a"); code != http.StatusTooManyRequests || err != nil || u.done.Load() != 1 {
		t.Errorf("refused: %d %v, and %d were done", code, err, u.done.Load())
	}
	if code, _, err := ask("GET", "/a"); code != 200 || err != nil {
		t.Errorf("what the rule is not for: %d %v", code, err)
	}
	p.Set(Rule{Percent: 100, Lost: true})
	if code, _, err := ask("PATCH", "/a"); err == nil || u.done.Load() != 3 {
		t.Errorf("lost: %d %v, and %d were done", code, err, u.done.Load())
	}
	if hits := p.Hits(); !slices.Equal(hits, []int{1}) {
		t.Errorf("hits: %v", hits)
	}
	p.Set()
	u.Close()
	if code, _, err := ask("GET", "/a"); err == nil {
		t.Errorf("an API server that is down answers %d", code)
	}
}

// The same seed affects the same requests in any order.
func TestSeed(t *testing.T) {
	u := newUpstream(t)
	hit := func(seed uint64, paths ...string) (refused []string) {
		p, ask := newProxy(t, u, seed)
		p.Set(Rule{Percent: 40, Status: 500})
		for range 10 {
			for _, path := range paths {
				if code, _, err := ask("GET", path); err != nil {
					t.Fatal(err)
				} else if code == 500 {
					refused = append(refused, path)
				}
			}
		}
		slices.Sort(refused)
		return refused
	}
	one, same, other := hit(7, "/a", "/b", "/c"), hit(7, "/c", "/b", "/a"), hit(8, "/a", "/b", "/c")
	if !slices.Equal(one, same) || slices.Equal(one, other) {
		t.Errorf("one seed: %v and %v; another: %v", one, same, other)
	}
	if len(one) < 5 || len(one) > 20 {
		t.Errorf("%d of 30 were refused", len(one))
	}
}

func TestCut(t *testing.T) {
	u := newUpstream(t)
	p, _ := newProxy(t, u, 1)
	client, err := rest.HTTPClientFor(p.Config())
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(context.Background(), "GET", p.Config().Host+"/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	if first, err := lines.ReadString('\n'); first != "first\n" {
		t.Fatalf("%q, %v", first, err)
	}
	if n := p.Cut(); n != 1 {
		t.Errorf("%d watches were cut", n)
	}
	if more, err := lines.ReadString('\n'); err == nil {
		t.Errorf("after the cut comes %q", more)
	}
}

func TestMatches(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/pods": true, "/apis/networking.k8s.io/v1/networkpolicies?watch=1": true,
		"/api/v1/namespaces/weir-p-7/pods/ws-1-1": false, "/api/v1/namespaces/n/events": false, "/readyz": false,
	} {
		if got := IsPicture(httptest.NewRequest("GET", path, nil)); got != want {
			t.Errorf("%s: %t", path, got)
		}
	}
}

func TestKubeconfig(t *testing.T) {
	u := newUpstream(t)
	p, _ := newProxy(t, u, 1)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := p.WriteKubeconfig(path); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(config.Host + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); !strings.Contains(string(b), "done") {
		t.Errorf("%q, %v", b, err)
	}
}
