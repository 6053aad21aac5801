package faults

import (
	"context"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Rule is a fault and the requests that it applies to. The first matching rule
// applies.
type Rule struct {
	Match   func(*http.Request) bool // nil: all requests
	Percent int                      // of those that match; 100 is every one

	Delay  time.Duration // before anything else
	Status int           // returned instead of forwarding; 429 has a Retry-After of a second
	Lost   bool          // the request is completed, and its response is lost
}

// Proxy forwards requests to an API server, except for the faults. Create one
// with New.
type Proxy struct {
	next   *httputil.ReverseProxy
	server *httptest.Server
	seed   uint64

	mu      sync.Mutex
	rules   []Rule
	seen    map[string]int // requests that matched, by rule, method and path
	hits    []int          // by rule
	watches map[*watch]bool
}

// watch is an open watch.
type watch struct {
	cut  context.CancelFunc
	over chan struct{}
}

// New starts a Proxy to the API server of config. Clients of the proxy have
// the rights of config.
func New(config *rest.Config, seed uint64) (*Proxy, error) {
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	target, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	p := &Proxy{seed: seed, seen: map[string]int{}, watches: map[*watch]bool{}}
	p.next = &httputil.ReverseProxy{Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host})
			r.Out.Header.Del("Authorization") // the transport has its own
		},
		// The connection breaks, as with an API server that is down.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.server = httptest.NewUnstartedServer(p)
	p.server.EnableHTTP2 = true
	p.server.StartTLS()
	return p, nil
}

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() {
	p.Cut()
	p.server.CloseClientConnections()
	p.server.Close()
}

// Config is a client configuration for the proxy.
func (p *Proxy) Config() *rest.Config {
	return &rest.Config{Host: p.server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: p.authority()}}
}

// WriteKubeconfig writes a kubeconfig for the proxy to path.
func (p *Proxy) WriteKubeconfig(path string) error {
	c := clientcmdapi.NewConfig()
	c.Clusters["faults"] = &clientcmdapi.Cluster{Server: p.server.URL, CertificateAuthorityData: p.authority()}
	c.Contexts["faults"] = &clientcmdapi.Context{Cluster: "faults"}
	c.CurrentContext = "faults"
	return clientcmd.WriteToFile(*c, path)
}

func (p *Proxy) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Set replaces the rules and resets their counts. Without rules nothing fails.
func (p *Proxy) Set(rules ...Rule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rules = rules
	clear(p.seen)
	p.hits = make([]int, len(rules))
}

// Hits returns how often each rule was applied.
func (p *Proxy) Hits() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.hits)
}

// Cut breaks all open watches and returns their number. After that they
// deliver nothing more, including watches from before a Set.
func (p *Proxy) Cut() int {
	p.mu.Lock()
	open := slices.Collect(maps.Keys(p.watches))
	p.mu.Unlock()
	for _, w := range open {
		w.cut()
	}
	for _, w := range open {
		<-w.over
	}
	return len(open)
}

// IsWatch matches watches.
func IsWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// IsPicture matches watches of the whole cluster, and the lists with which
// they begin.
func IsPicture(r *http.Request) bool {
	return r.Method == http.MethodGet && clusterWide.MatchString(r.URL.Path)
}

var clusterWide = regexp.MustCompile(`^/(api|apis/[^/]+)/v\d+/[a-z]+$`)

// IsChange matches requests that create, change or delete.
func IsChange(r *http.Request) bool { return r.Method != http.MethodGet }

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if IsWatch(r) {
		ctx, end := p.open(r.Context())
		defer end()
		r = r.WithContext(ctx)
	}
	rule, hit := p.decide(r)
	if !hit {
		p.next.ServeHTTP(w, r)
		return
	}
	if rule.Delay > 0 {
		select {
		case <-r.Context().Done():
		case <-time.After(rule.Delay):
		}
	}
	switch {
	case rule.Status != 0:
		if rule.Status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "1")
		}
		http.Error(w, "a fault that a test asked for", rule.Status)
	case rule.Lost:
		p.next.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	default:
		p.next.ServeHTTP(w, r)
	}
}

// decide finds the rule that applies to a request.
func (p *Proxy) decide(r *http.Request) (Rule, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, rule := range p.rules {
		if rule.Match != nil && !rule.Match(r) {
			continue
		}
		key := strconv.Itoa(i) + " " + r.Method + " " + r.URL.Path
		p.seen[key]++
		h := fnv.New64a()
		fmt.Fprint(h, p.seed, key, p.seen[key])
		if h.Sum64()>>16%100 < uint64(rule.Percent) {
			p.hits[i]++
			return rule, true
		}
	}
	return Rule{}, false
}

// open registers a watch before any rule is applied, so that it can be cut.
func (p *Proxy) open(ctx context.Context) (context.Context, func()) {
	w := &watch{over: make(chan struct{})}
	ctx, w.cut = context.WithCancel(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watches[w] = true
	return ctx, func() {
		w.cut()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, w)
		close(w.over)
	}
}
