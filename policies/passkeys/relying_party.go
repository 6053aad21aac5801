package passkeys

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"

	"weir/models"
)

// ErrRefused is the result of a ceremony that is not a valid one of it.
var ErrRefused = errors.New("passkey refused")

// reasonOf is ErrRefused with the reason, which the library keeps apart from its message.
func reasonOf(err error) error {
	if e, ok := errors.AsType[*protocol.Error](err); ok {
		return fmt.Errorf("%w: %s %s", ErrRefused, e.Details, e.DevInfo)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// RelyingParty is a portal at one origin. Browsers offer its passkeys there alone.
type RelyingParty struct {
	Origin string
	web    *webauthn.WebAuthn
}

// New returns the relying party at an origin, such as https://weir.example.org. Browsers
// have passkeys in secure contexts only, for https and a domain of at least two labels, or
// on localhost. At any other origin there is none, and no error.
func New(origin string) (*RelyingParty, error) {
	u, err := url.Parse(origin)
	if err != nil {
		return nil, err
	}
	host := strings.ToLower(u.Hostname())
	if net.ParseIP(host) != nil || u.Scheme != "https" && host != "localhost" || protocol.ValidateRPID(host) != nil {
		return nil, nil
	}
	w, err := webauthn.New(&webauthn.Config{RPID: host, RPDisplayName: "Weir", RPOrigins: []string{origin},
		AttestationPreference:             protocol.PreferNoAttestation,
		ExtensionsUnsolicitedOutputPolicy: protocol.UnsolicitedOutputPolicyIgnore, // password managers add some; none is used
		AuthenticatorSelection:            protocol.AuthenticatorSelection{UserVerification: protocol.VerificationRequired}})
	if err != nil {
		return nil, fmt.Errorf("passkeys at %s: %w", origin, err)
	}
	return &RelyingParty{origin, w}, nil
}

// Account is whose passkeys a ceremony is about.
type Account struct {
	Handle   []byte // names the account to authenticators: random, at most 64 bytes
	Email    string
	Name     string
	Passkeys []models.Passkey
}

// WebAuthnID is the handle of the account; see [webauthn.User] for it and what follows.
func (a Account) WebAuthnID() []byte { return a.Handle }

// WebAuthnName is how authenticators list the account.
func (a Account) WebAuthnName() string { return a.Email }

// WebAuthnDisplayName is the name of the person.
func (a Account) WebAuthnDisplayName() string { return a.Name }

// WebAuthnCredentials are the passkeys of the account.
func (a Account) WebAuthnCredentials() []webauthn.Credential {
	return models.Map(a.Passkeys, credentialOf)
}

func credentialOf(p models.Passkey) webauthn.Credential {
	c := webauthn.Credential{ID: p.CredentialID, PublicKey: p.PublicKey,
		Flags:         webauthn.CredentialFlags{BackupEligible: p.BackupEligible},
		Authenticator: webauthn.Authenticator{SignCount: uint32(p.SignCount)}}
	for _, t := range p.Transports {
		c.Transport = append(c.Transport, protocol.AuthenticatorTransport(t))
	}
	return c
}

// Ceremony is what a ceremony remembers until its result comes. Whoever keeps it must not
// let the person's side change it.
type Ceremony struct {
	Session webauthn.SessionData `json:"session"`
	UserID  int64                `json:"user,omitempty"` // who creates a passkey; 0: somebody signs in
	Began   time.Time            `json:"began"`
}

// BeginCreation begins to create a passkey for an account. The options are those of
// PublicKeyCredential.parseCreationOptionsFromJSON. An authenticator that has a passkey of
// the account creates no other.
func (r *RelyingParty) BeginCreation(a Account) (json.RawMessage, Ceremony, error) {
	options, session, err := r.web.BeginRegistration(a, webauthn.WithResidentKeyRequirement(protocol.ResidentKeyRequirementRequired),
		webauthn.WithExclusions(webauthn.Credentials(a.WebAuthnCredentials()).CredentialDescriptors()))
	if err != nil {
		return nil, Ceremony{}, err
	}
	raw, err := json.Marshal(options.Response)
	return raw, Ceremony{Session: *session}, err
}

// Create verifies the result of BeginCreation, a PublicKeyCredential in JSON, and returns
// the passkey.
func (r *RelyingParty) Create(c Ceremony, credential []byte) (models.Passkey, error) {
	parsed, err := protocol.ParseCredentialCreationResponseBytes(credential)
	if err != nil {
		return models.Passkey{}, reasonOf(err)
	}
	made, err := r.web.CreateCredential(Account{Handle: c.Session.UserID}, c.Session, parsed)
	if err != nil {
		return models.Passkey{}, reasonOf(err)
	}
	p := models.Passkey{CredentialID: made.ID, UserHandle: c.Session.UserID, PublicKey: made.PublicKey, Transports: []string{},
		SignCount: int64(made.Authenticator.SignCount), BackupEligible: made.Flags.BackupEligible, CeremonyAt: c.Began}
	for _, t := range made.Transport {
		p.Transports = append(p.Transports, string(t))
	}
	return p, nil
}

// BeginSignIn begins to sign in with any passkey of the portal. The options are those of
// PublicKeyCredential.parseRequestOptionsFromJSON.
func (r *RelyingParty) BeginSignIn() (json.RawMessage, Ceremony, error) {
	options, session, err := r.web.BeginDiscoverableLogin()
	if err != nil {
		return nil, Ceremony{}, err
	}
	raw, err := json.Marshal(options.Response)
	return raw, Ceremony{Session: *session}, err
}

// SignIn verifies the result of BeginSignIn, a PublicKeyCredential in JSON, with the
// passkey that find returns for the id of its credential. It returns that passkey with the
// new count of its signatures. The caller accepts a ceremony only once.
func (r *RelyingParty) SignIn(c Ceremony, credential []byte, find func(id []byte) (models.Passkey, error)) (p models.Passkey, err error) {
	parsed, err := protocol.ParseCredentialRequestResponseBytes(credential)
	if err != nil {
		return p, reasonOf(err)
	}
	if p, err = find(parsed.RawID); err != nil {
		return p, err
	}
	owner := func([]byte, []byte) (webauthn.User, error) {
		return Account{Handle: p.UserHandle, Passkeys: []models.Passkey{p}}, nil
	}
	used, err := r.web.ValidateDiscoverableLogin(owner, c.Session, parsed)
	if err != nil {
		return p, reasonOf(err)
	}
	if used.Authenticator.CloneWarning {
		return p, fmt.Errorf("%w: the count of its signatures went back, so it may have been copied", ErrRefused)
	}
	p.SignCount = int64(used.Authenticator.SignCount)
	return p, nil
}
