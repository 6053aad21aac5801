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
	"sync/atomic"
	"testing"
	"time"

	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The credentials of the client, and the password of all users.
const (
	ClientID     = "weir"
	ClientSecret = "a secret of the client"
	Password     = "a password at the provider"
)

// Person is a user of the provider.
type Person struct {
	Subject  string // also the user name
	Email    string
	Verified bool
	Name     string
	Groups   []string
}

// Provider is a running OpenID Connect provider.
type Provider struct {
	Issuer string

	server   *httptest.Server
	redirect atomic.Value // string
	faults   atomic.Value // Faults
	down     atomic.Bool

	mu     sync.Mutex
	people map[string]Person
}

// Faults is a set of faults in the provider's responses.
type Faults struct {
	Nonce    string
	Audience []string      // additional audience
	Client   string        // the client that the tokens are issued for
	Lifetime time.Duration // 0: an hour; negative: expired tokens
	Userinfo string        // the subject at the userinfo endpoint
	InToken  bool          // groups in the ID token too; not a fault
}

// New starts a provider for the test. Nobody can sign in before SetRedirect.
func New(t testing.TB) *Provider {
	t.Helper()
	p := &Provider{people: map[string]Person{}}
	p.SetRedirect("")
	p.SetFaults(Faults{})
	var handler http.Handler
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p.down.Load() {
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
	logins := testStorage{Storage: storage.NewStorageWithClients(users{p}, map[string]*storage.Client{ClientID: client}), provider: p}
	provider, err := op.NewProvider(&op.Config{CryptoKey: sha256.Sum256([]byte("of a test")), CodeMethodS256: true}, logins,
		op.StaticIssuer(p.Issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.NewTextHandler(io.Discard, nil))))
	if err != nil {
		return nil, err
	}
	callback := op.AuthCallbackURL(provider)
	mux := http.NewServeMux()
	mux.Handle("/", provider)
	mux.HandleFunc("GET /favicon.ico", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.HandleFunc("GET /login/username", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, page, html.EscapeString(r.FormValue("authRequestID")))
	})
	interceptor := op.NewIssuerInterceptor(provider.IssuerFromRequest)
	mux.HandleFunc("POST /login/username", interceptor.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.PostFormValue("id")
		if err := logins.CheckUsernamePassword(r.PostFormValue("username"), r.PostFormValue("password"), id); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		http.Redirect(w, r, callback(r.Context(), id), http.StatusFound)
	}))
	return mux, nil
}

const page = `<!DOCTYPE html><html lang="en"><title>The provider</title>
<main><form method="post" action="/login/username"><input type="hidden" name="id" value="%s">
<label>User <input name="username" id="username"></label>
<label>Password <input name="password" id="password" type="password"></label>
<button>Let me in</button></form></main></html>`

// SetRedirect sets the redirect URI of the portal.
func (p *Provider) SetRedirect(redirect string) { p.redirect.Store(redirect) }

// AddPerson adds or replaces a person.
func (p *Provider) AddPerson(person Person) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.people[person.Subject] = person
}

// SetFaults sets the faults.
func (p *Provider) SetFaults(s Faults) { p.faults.Store(s) }

// SetDown makes the provider unavailable, or available again.
func (p *Provider) SetDown(down bool) { p.down.Store(down) }

func (p *Provider) currentFaults() Faults { return p.faults.Load().(Faults) }

func (p *Provider) person(subject string) (Person, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	person, ok := p.people[subject]
	return person, ok
}
