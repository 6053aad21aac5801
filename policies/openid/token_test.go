package openid_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"weir/models"
	"weir/policies/openid"
)

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func sign(t *testing.T, key *ecdsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(raw)
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// An ID token is accepted only if everything in it is for this portal and this sign-in:
// OpenID Connect Core 1.0, sections 3.1.3.7 and 5.3.2.
func TestIDTokensThatAreRejected(t *testing.T) {
	key, now := newKey(t), time.Now()
	for name, c := range map[string]struct {
		claims  map[string]any // that differ
		key     *ecdsa.PrivateKey
		subject string // of the userinfo; "ann" if empty
		accept  bool
	}{
		"as it should be":         {accept: true},
		"no nonce":                {claims: map[string]any{"nonce": nil}},
		"nonce of another visit":  {claims: map[string]any{"nonce": "other"}},
		"other audience":          {claims: map[string]any{"aud": "wiki"}},
		"two audiences, for us":   {claims: map[string]any{"aud": []string{"wiki", "weir"}, "azp": "weir"}, accept: true},
		"two audiences, for one":  {claims: map[string]any{"aud": []string{"wiki", "weir"}, "azp": "wiki"}},
		"two audiences, for whom": {claims: map[string]any{"aud": []string{"wiki", "weir"}}},
		"for another client":      {claims: map[string]any{"azp": "wiki"}},
		"other issuer":            {claims: map[string]any{"iss": "https://id.example.org"}},
		"expired":                 {claims: map[string]any{"exp": now.Add(-2 * time.Minute).Unix()}},
		"issued a minute ahead":   {claims: map[string]any{"iat": now.Add(time.Minute).Unix()}, accept: true},
		"issued in the future":    {claims: map[string]any{"iat": now.Add(time.Hour).Unix()}},
		"signed by others":        {key: newKey(t)},
		"userinfo about others":   {subject: "bob"},
	} {
		t.Run(name, func(t *testing.T) {
			var server *httptest.Server
			send := func(w http.ResponseWriter, body any) {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(body) // a test's client is there
			}
			server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/token":
					claims := map[string]any{"iss": server.URL, "aud": "weir", "sub": "ann", "nonce": pass.Nonce, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
					maps.Copy(claims, c.claims)
					signer := key
					if c.key != nil {
						signer = c.key
					}
					send(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": sign(t, signer, claims)})
				case "/keys":
					send(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
				case "/me":
					subject := "ann"
					if c.subject != "" {
						subject = c.subject
					}
					send(w, map[string]any{"sub": subject, "email": "ann@example.org", "email_verified": true})
				default:
					describes(map[string]any{"userinfo_endpoint": server.URL + "/me", "id_token_signing_alg_values_supported": []string{"ES256"}})(w, server.URL)
				}
			}))
			defer server.Close()
			p := openid.New(openid.Config{Issuer: server.URL, ClientID: "weir", Name: "Example", GroupsClaim: "groups", Now: time.Now})
			as, err := p.Redeem(t.Context(), pass, "code", "")
			switch {
			case c.accept && (err != nil || as.Subject != "ann" || as.Email != "ann@example.org" || !as.Verified):
				t.Errorf("%+v, %v", as, err)
			case !c.accept && models.KindOf(err) != models.KindForbidden:
				t.Errorf("accepted: %+v, %v", as, err)
			}
		})
	}
}
