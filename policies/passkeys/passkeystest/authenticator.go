package passkeystest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/fxamacker/cbor/v2"
)

// Authenticator has one passkey at most, and a browser that is at Origin.
type Authenticator struct {
	Origin     string
	Unverified bool   // it does not verify the person
	Count      uint32 // of signatures
	ID         []byte // of its credential

	key    *ecdsa.PrivateKey
	handle string
}

// Flags of authenticator data (WebAuthn section 6.1).
const (
	userPresent, userVerified     = 1, 4
	backupEligible, backupState   = 8, 16
	attestedData                  = 64
	algorithmES256, coseCurveP256 = -7, 1
)

type options struct {
	Challenge string `json:"challenge"`
	RPID      string `json:"rpId"`
	RP        struct {
		ID string `json:"id"`
	} `json:"rp"`
	User struct {
		ID string `json:"id"`
	} `json:"user"`
}

func read(t testing.TB, raw []byte) (o options) {
	t.Helper()
	if err := json.Unmarshal(raw, &o); err != nil || o.Challenge == "" {
		t.Fatalf("options %s: %v", raw, err)
	}
	return o
}

var encoding = base64.RawURLEncoding

// Create creates a passkey by options of the portal, and returns the PublicKeyCredential.
func (a *Authenticator) Create(t testing.TB, raw []byte) []byte {
	t.Helper()
	o := read(t, raw)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	a.key, a.handle, a.ID = key, o.User.ID, make([]byte, 16)
	rand.Read(a.ID)
	public, err := key.PublicKey.Bytes() // 4, x, y
	if err != nil {
		t.Fatal(err)
	}
	cose := encode(t, map[int]any{1: 2, 3: algorithmES256, -1: coseCurveP256, -2: public[1:33], -3: public[33:]})
	data := a.data(o.RP.ID, attestedData)
	data = append(data, make([]byte, 16)...) // no model
	data = binary.BigEndian.AppendUint16(data, uint16(len(a.ID)))
	data = append(append(data, a.ID...), cose...)
	object := encode(t, map[string]any{"fmt": "none", "attStmt": map[string]any{}, "authData": data})
	return a.credential(t, map[string]any{"clientDataJSON": encoding.EncodeToString(a.client(t, "webauthn.create", o)),
		"attestationObject": encoding.EncodeToString(object), "transports": []string{"internal"}})
}

// Get signs in by options of the portal, and returns the PublicKeyCredential.
func (a *Authenticator) Get(t testing.TB, raw []byte) []byte {
	t.Helper()
	o := read(t, raw)
	client, data := a.client(t, "webauthn.get", o), a.data(o.RPID, 0)
	hash := sha256.Sum256(client)
	signed := sha256.Sum256(append(bytes.Clone(data), hash[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, signed[:])
	if err != nil {
		t.Fatal(err)
	}
	return a.credential(t, map[string]any{"clientDataJSON": encoding.EncodeToString(client), "userHandle": a.handle,
		"authenticatorData": encoding.EncodeToString(data), "signature": encoding.EncodeToString(signature)})
}

func (a *Authenticator) credential(t testing.TB, response map[string]any) []byte {
	t.Helper()
	id := encoding.EncodeToString(a.ID)
	raw, err := json.Marshal(map[string]any{"id": id, "rawId": id, "type": "public-key", "response": response,
		"clientExtensionResults": map[string]any{"credProps": map[string]any{"rk": true}}}) // for which nobody asked
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (a *Authenticator) client(t testing.TB, kind string, o options) []byte {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"type": kind, "challenge": o.Challenge, "origin": a.Origin, "crossOrigin": false})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (a *Authenticator) data(rp string, flags byte) []byte {
	hash := sha256.Sum256([]byte(rp))
	flags |= userPresent | backupEligible | backupState
	if !a.Unverified {
		flags |= userVerified
	}
	return binary.BigEndian.AppendUint32(append(hash[:], flags), a.Count)
}

func encode(t testing.TB, v any) []byte {
	t.Helper()
	mode, err := cbor.CTAP2EncOptions().EncMode()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := mode.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
