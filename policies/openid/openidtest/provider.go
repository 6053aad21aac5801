package openidtest

import (
	"crypto/sha256"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The client that the provider knows, and everybody's password there.
const (
	ClientID     = "weir"
	ClientSecret = "a secret of the client"
	Password     = "a password at the provider"
)

// Person is somebody whom the provider knows.
type Person struct {
	Subject  string // also what is typed to sign in
	Email    string
	Verified bool
	Name     string
	Groups   []string
}

// Provider is a running provider.
type Provider struct {
	Issuer string

	server *httptest.Server

	mu       sync.Mutex
	redirect string
	people   map[string]Person
	spoil    Spoil
	ended    bool
}

// Spoil makes the provider say what it should not, in its ID tokens and after.
type Spoil struct {
	Nonce    string
	Audience []string      // beside the client
	Client   string        // they are for this one
	Lifetime time.Duration // 0: an hour; below 0 they are expired when they come
	Userinfo string        // the subject at the userinfo endpoint
	InToken  bool          // tell about the person in the ID token, too; nothing wrong with that
}

// New starts a provider, which ends with the test. It lets nobody in before
// SendBackTo.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{people: map[string]Person{}}
	var handler http.Handler
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.silent() {
			http.Error(w, "out of order", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	p.Issuer = p.server.URL
	var err error
	if handler, err = p.handler(); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *Provider) handler() (http.Handler, error) {
	client := storage.WebClient(ClientID, ClientSecret)
	backend := opStorage{Storage: storage.NewStorageWithClients(people{p}, map[string]*storage.Client{ClientID: client}), provider: p}
	provider, err := op.NewProvider(&op.Config{CryptoKey: sha256.Sum256([]byte("of a test")), CodeMethodS256: true}, backend,
		op.StaticIssuer(p.Issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		return nil, err
	}
	back := op.AuthCallbackURL(provider)
	mux := http.NewServeMux()
	mux.Handle("/", provider)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /login/username", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, page, html.EscapeString(r.FormValue("authRequestID")))
	})
	interceptor := op.NewIssuerInterceptor(provider.IssuerFromRequest)
	mux.HandleFunc("POST /login/username", interceptor.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.PostFormValue("id")
		if err := backend.CheckUsernamePassword(r.PostFormValue("username"), r.PostFormValue("password"), id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, back(r.Context(), id), http.StatusFound)
	}))
	return mux, nil
}

const page = `<!DOCTYPE html><html lang="en"><title>The provider</title>
<main><form method="post" action="/login/username"><input type="hidden" name="id" value="%s">
<label>User <input name="username" id="username"></label>
<label>Password <input name="password" id="password" type="password"></label>
<button>Let me in</button></form></main></html>`

// SendBackTo sets the one address of the portal to which people come back.
func (p *Provider) SendBackTo(redirect string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.redirect = redirect
}

// Know adds a person, or changes what is said of one.
func (p *Provider) Know(person Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[person.Subject] = person
}

// Spoil sets what is wrong from now on.
func (p *Provider) Spoil(s Spoil) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spoil = s
}

// Silent makes the provider answer nothing of use, or answer again.
func (p *Provider) Silent(yes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = yes
}

func (p *Provider) silent() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended
}

func (p *Provider) spoiled() Spoil {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.spoil
}

func (p *Provider) person(subject string) (Person, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	person, ok := p.people[subject]
	return person, ok
}
