package authority

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strings"
)

// Code lets one agent enrol, once.
type Code struct {
	secret      [16]byte
	Fingerprint Fingerprint // of the authority that the code is for
}

// alphabet is Crockford's base 32: no letter that reads like a digit.
var alphabet = base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").WithPadding(base32.NoPadding)

const (
	codeLength  = 52 // characters of 32 bytes
	groupLength = 4
)

// NewCode makes a code for this authority.
func (a *Authority) NewCode() Code {
	c := Code{Fingerprint: a.Fingerprint()}
	rand.Read(c.secret[:]) // never fails; see crypto/rand
	return c
}

// String writes a code for people: 52 characters in groups of four. It is
// secret.
func (c Code) String() string {
	text := alphabet.EncodeToString(append(c.secret[:], c.Fingerprint[:]...))
	var groups []string
	for i := 0; i < len(text); i += groupLength {
		groups = append(groups, text[i:i+groupLength])
	}
	return strings.Join(groups, "-")
}

// Hash is how a code is stored: its secret has enough entropy that a plain
// hash keeps it.
func (c Code) Hash() string {
	sum := sha256.Sum256(append([]byte("weir authorization\n"), c.secret[:]...))
	return fmt.Sprintf("%x", sum)
}

var tolerant = strings.NewReplacer("-", "", " ", "", "\t", "", "\n", "", "\r", "", "O", "0", "I", "1", "L", "1")

// ParseCode reads a code as people write it: in any case, with or without
// hyphens and spaces, with O for 0 and I or L for 1. The error does not repeat
// it.
func ParseCode(text string) (Code, error) {
	if len(text) > 10*codeLength {
		return Code{}, errors.New("too long for an authorization code")
	}
	clean := tolerant.Replace(strings.ToUpper(text))
	if len(clean) != codeLength {
		return Code{}, fmt.Errorf("an authorization code has %d letters and digits, this has %d", codeLength, len(clean))
	}
	raw, err := alphabet.DecodeString(clean)
	if err != nil {
		return Code{}, errors.New("an authorization code has only digits and letters other than U")
	}
	return Code{secret: [16]byte(raw[:16]), Fingerprint: Fingerprint(raw[16:])}, nil
}
