package openid_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"weir/models"
	"weir/policies"
	"weir/policies/openid"
)

// fake answers for a provider as a test says.
type fake struct {
	*httptest.Server
	asked  atomic.Int64
	answer func(w http.ResponseWriter, issuer string)
}

func newFake(t *testing.T) *fake {
	f := &fake{}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.asked.Add(1)
		f.answer(w, f.URL)
	}))
	t.Cleanup(f.Close)
	return f
}

// describes answers with a description in which some entries are others.
func describes(other map[string]any) func(http.ResponseWriter, string) {
	return func(w http.ResponseWriter, issuer string) {
		all := map[string]any{"issuer": issuer, "authorization_endpoint": issuer + "/auth", "token_endpoint": issuer + "/token", "jwks_uri": issuer + "/keys"}
		maps.Copy(all, other)
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(all) // a test's client is there
	}
}

func (f *fake) provider(now func() time.Time) *openid.Provider {
	return openid.New(openid.Config{Issuer: f.URL, ClientID: "weir", Name: "Example", GroupsClaim: "groups", Now: now})
}

var pass = policies.SignInState{Redirect: "http://localhost/back", State: "state", Nonce: "nonce", Verifier: strings.Repeat("v", 43)}

func TestDescriptionsThatAreNotTaken(t *testing.T) {
	f := newFake(t)
	for name, m := range map[string]struct {
		answer func(http.ResponseWriter, string)
		err    string // empty: it is taken
	}{
		"whole":           {describes(nil), ""},
		"other issuer":    {describes(map[string]any{"issuer": "https://id.example.org"}), "did not match"},
		"codes in clear":  {describes(map[string]any{"token_endpoint": "http://id.example.org/token"}), "could be read by others"},
		"keys in clear":   {describes(map[string]any{"jwks_uri": "http://id.example.org/keys"}), "could be read by others"},
		"people in clear": {describes(map[string]any{"userinfo_endpoint": "http://id.example.org/me"}), "could be read by others"},
		"no address":      {describes(map[string]any{"authorization_endpoint": ""}), "could be read by others"},
		"no S256":         {describes(map[string]any{"code_challenge_methods_supported": []string{"plain"}}), "PKCE"},
		"no JSON":         {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, "hello") }, "decode"},
		"too long":        {func(w http.ResponseWriter, _ string) { fmt.Fprint(w, strings.Repeat(" ", 2<<20), "{}") }, "body too large"},
		"from elsewhere": {func(w http.ResponseWriter, _ string) {
			w.Header().Set("Location", "https://id.example.org")
			w.WriteHeader(http.StatusFound)
		}, "302"},
	} {
		t.Run(name, func(t *testing.T) {
			f.answer = m.answer
			_, err := f.provider(time.Now).AuthCodeURL(t.Context(), pass)
			if m.err == "" && err != nil || m.err != "" && (models.KindOf(err) != models.KindUnavailable || !strings.Contains(fmt.Sprint(err), m.err)) {
				t.Errorf("got %v, want %q", err, m.err)
			}
		})
	}
}

func TestTheProviderIsAskedRarely(t *testing.T) {
	f, now := newFake(t), time.Now()
	p := f.provider(func() time.Time { return now })
	if f.asked.Load() != 0 {
		t.Error("asked before anybody signs in")
	}
	for _, step := range []struct {
		later time.Duration
		down  bool
		asked int64
		ok    bool
	}{
		{0, true, 1, false},
		{2 * time.Second, false, 1, false}, // within the pause
		{2 * time.Second, false, 2, true},
		{59 * time.Minute, true, 2, true},
		{2 * time.Minute, true, 3, true}, // what it said before
		{time.Second, true, 3, true},
		{3 * time.Second, false, 4, true},
		{time.Second, true, 4, true},
	} {
		now = now.Add(step.later)
		f.answer = describes(nil)
		if step.down {
			f.answer = func(w http.ResponseWriter, _ string) { w.WriteHeader(http.StatusBadGateway) }
		}
		_, err := p.AuthCodeURL(t.Context(), pass)
		if (err == nil) != step.ok || f.asked.Load() != step.asked {
			t.Errorf("%+v: asked %d times, %v", step, f.asked.Load(), err)
		}
	}
}

func TestGroupsAreAskedForWhereThatIsNeeded(t *testing.T) {
	f := newFake(t)
	for scope, want := range map[string]string{"groups": "scope=openid+email+profile+groups&", "roles": "scope=openid+email+profile&"} {
		f.answer = describes(map[string]any{"scopes_supported": []string{"openid", scope}})
		to, err := f.provider(time.Now).AuthCodeURL(t.Context(), pass)
		if err != nil || !strings.Contains(to, want) {
			t.Errorf("%s: %s, %v", scope, to, err)
		}
	}
}

func TestCodesSayWhoGaveThem(t *testing.T) {
	f := newFake(t)
	for _, m := range []struct {
		allocated bool
		issuer    string
		refused   bool
	}{{true, "", true}, {true, "https://other.example.org", true}, {false, "https://other.example.org", true}, {true, f.URL, false}, {false, "", false}} {
		f.answer = describes(map[string]any{"authorization_response_iss_parameter_supported": m.allocated})
		_, err := f.provider(time.Now).Redeem(t.Context(), pass, "code", m.issuer)
		if got := strings.Contains(fmt.Sprint(err), "the code comes from"); err == nil || got != m.refused {
			t.Errorf("%+v: %v", m, err)
		}
	}
}

func TestSafeAddress(t *testing.T) {
	for address, want := range map[string]bool{"https://id.example.org/x": true, "http://localhost:80": true, "http://127.0.0.1": true, "http://[::1]:8080": true,
		"http://id.example.org": false, "http://127.example.org": false, "http://localhost.example.org": false, "ftp://localhost": false,
		"https://": false, "id.example.org": false, "": false, "https://a:b@id.example.org": false, "https://id.example.org:x": false} {
		if got := openid.SafeAddress(address); got != want {
			t.Errorf("%q: %t", address, got)
		}
	}
}
