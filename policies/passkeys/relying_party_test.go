package passkeys_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"weir/models"
	"weir/policies/passkeys"
	"weir/policies/passkeys/passkeystest"
)

const origin = "http://localhost:8080"

func party(t *testing.T, origin string) *passkeys.RelyingParty {
	t.Helper()
	r, err := passkeys.New(origin)
	if err != nil || r == nil {
		t.Fatalf("%s: %v, %v", origin, r, err)
	}
	return r
}

// create is a passkey that a has created at r.
func create(t *testing.T, r *passkeys.RelyingParty, a *passkeystest.Authenticator) models.Passkey {
	t.Helper()
	options, c, err := r.BeginCreation(passkeys.Account{Handle: []byte("handle of ada"), Email: "ada@example.org", Name: "Ada"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := r.Create(c, a.Create(t, options))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// signIn signs in with what a answers to options, changed by change.
func signIn(t *testing.T, r *passkeys.RelyingParty, a *passkeystest.Authenticator, p models.Passkey, change func([]byte) []byte) (models.Passkey, error) {
	t.Helper()
	options, c, err := r.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	return r.SignIn(c, change(a.Get(t, options)), func(id []byte) (models.Passkey, error) {
		if !bytes.Equal(id, p.CredentialID) {
			return models.Passkey{}, models.NotFound("passkey")
		}
		return p, nil
	})
}

func same(raw []byte) []byte { return raw }

func TestCreateAndSignIn(t *testing.T) {
	r, a := party(t, origin), &passkeystest.Authenticator{Origin: origin, Count: 7}
	p := create(t, r, a)
	if !bytes.Equal(p.CredentialID, a.ID) || string(p.UserHandle) != "handle of ada" || p.SignCount != 7 || !p.BackupEligible ||
		len(p.Transports) != 1 || p.Transports[0] != "internal" {
		t.Errorf("created %+v", p)
	}
	a.Count = 8
	used, err := signIn(t, r, a, p, same)
	if err != nil || used.SignCount != 8 {
		t.Errorf("used %+v, %v", used, err)
	}
	if _, err = signIn(t, r, a, models.Passkey{}, same); models.KindOf(err) != models.KindNotFound || errors.Is(err, passkeys.ErrRefused) {
		t.Errorf("unknown: %v", err)
	}
}

// TestOptions are what browsers need: what is left out, they choose.
func TestOptions(t *testing.T) {
	r := party(t, "https://weir.example.org")
	mine := []models.Passkey{{CredentialID: []byte("one"), Transports: []string{"usb"}}}
	raw, _, err := r.BeginCreation(passkeys.Account{Handle: []byte("h"), Email: "ada@example.org", Name: "Ada", Passkeys: mine})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		RP                 struct{ ID string }
		Attestation        string
		ExcludeCredentials []struct {
			ID         string
			Transports []string
		}
		AuthenticatorSelection struct{ UserVerification, ResidentKey string }
	}
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if s := got.AuthenticatorSelection; got.RP.ID != "weir.example.org" || s.UserVerification != "required" || s.ResidentKey != "required" ||
		len(got.ExcludeCredentials) != 1 || got.ExcludeCredentials[0].ID != "b25l" {
		t.Errorf("%s", raw)
	}
	var request struct{ RPID, UserVerification string }
	if raw, _, err = r.BeginSignIn(); err != nil || json.Unmarshal(raw, &request) != nil || request.RPID != "weir.example.org" ||
		request.UserVerification != "required" {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestOrigins(t *testing.T) {
	for origin, offered := range map[string]bool{"https://weir.example.org": true, "https://weir.example.org:8443": true,
		"http://localhost:8080": true, "https://localhost": true, "http://weir.example.org": false, "http://127.0.0.1:8080": false,
		"https://192.0.2.1": false, "https://weir": false,
		"https://weir.example.org.": false, "https://пример.example.org": false, "https://Weir.Example.org": true, "https://[2001:db8::1]": false} {
		if r, err := passkeys.New(origin); err != nil || (r != nil) != offered {
			t.Errorf("%s: %v, %v", origin, r, err)
		}
	}
}

// TestRefused are results that are not those of the ceremony. A notebook's origin is a
// subdomain of the portal's host, so its browser makes one for the portal, but says where.
func TestRefused(t *testing.T) {
	r, a := party(t, origin), &passkeystest.Authenticator{Origin: origin, Count: 5}
	p := create(t, r, a)
	another := &passkeystest.Authenticator{Origin: origin}
	other := create(t, r, another)
	refused := func(name string, err error) {
		t.Helper()
		if !errors.Is(err, passkeys.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	a.Count = 6
	if _, err := signIn(t, r, a, p, same); err != nil {
		t.Fatal(err)
	}
	_, err := signIn(t, r, a, p, func([]byte) []byte { return []byte("{") })
	refused("no JSON", err)
	_, err = signIn(t, r, a, p, func([]byte) []byte { return []byte("{}") })
	refused("nothing", err)
	_, err = signIn(t, r, a, p, func(raw []byte) []byte {
		return bytes.Replace(raw, []byte(`"signature":"ME`), []byte(`"signature":"MF`), 1)
	})
	refused("another signature", err)
	p.PublicKey, other.PublicKey = other.PublicKey, p.PublicKey
	_, err = signIn(t, r, a, p, same)
	refused("another key", err)
	p.PublicKey, other.PublicKey = other.PublicKey, p.PublicKey
	options, _, err := r.BeginSignIn()
	if err != nil {
		t.Fatal(err)
	}
	_, err = signIn(t, r, a, p, func([]byte) []byte { return a.Get(t, options) })
	refused("another ceremony", err)
	p.UserHandle = []byte("handle of eve")
	_, err = signIn(t, r, a, p, same)
	refused("another account", err)
	p.UserHandle = []byte("handle of ada")
	p.SignCount = 6
	_, err = signIn(t, r, a, p, same)
	refused("a copy", err)
	p.SignCount = 5
	a.Origin = "http://notebook-7.localhost:8080"
	_, err = signIn(t, r, a, p, same)
	refused("a notebook's origin", err)
	a.Origin, a.Unverified = origin, true
	_, err = signIn(t, r, a, p, same)
	refused("an unverified person", err)
	a.Unverified = false
	if _, err = signIn(t, r, a, p, same); err != nil {
		t.Errorf("at last: %v", err)
	}
}

func TestRefusedCreations(t *testing.T) {
	r := party(t, origin)
	ada := passkeys.Account{Handle: []byte("handle of ada"), Email: "ada@example.org", Name: "Ada"}
	for name, a := range map[string]*passkeystest.Authenticator{"a notebook's origin": {Origin: "http://notebook-7.localhost:8080"},
		"an unverified person": {Origin: origin, Unverified: true}} {
		options, c, err := r.BeginCreation(ada)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Create(c, a.Create(t, options)); !errors.Is(err, passkeys.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	options, _, err := r.BeginCreation(ada)
	if err != nil {
		t.Fatal(err)
	}
	_, c, err := r.BeginCreation(ada)
	if err != nil {
		t.Fatal(err)
	}
	made := (&passkeystest.Authenticator{Origin: origin}).Create(t, options)
	for name, raw := range map[string][]byte{"another ceremony": made, "no JSON": []byte("x"), "nothing": nil} {
		if _, err := r.Create(c, raw); !errors.Is(err, passkeys.ErrRefused) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
