package authority

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code is an authorization code, with which one agent can enroll once.
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

// String writes the code, which is secret: 52 characters in groups of four.
func (c Code) String() string {
	return EncodeCode(append(c.secret[:], c.Fingerprint[:]...))
}

// EncodeCode writes bytes for people, in groups of four characters.
func EncodeCode(raw []byte) string {
	var groups []string
	for group := range slices.Chunk([]byte(alphabet.EncodeToString(raw)), groupLength) {
		groups = append(groups, string(group))
	}
	return strings.Join(groups, "-")
}

// DecodeCode reads what EncodeCode has written: in upper or lower case, with or
// without hyphens and spaces, with O for 0 and I or L for 1.
func DecodeCode(text string) ([]byte, error) {
	text = normal(text)
	raw, err := alphabet.DecodeString(text)
	if err == nil && alphabet.EncodedLen(len(raw)) != len(text) {
		err = errors.New("the code has a wrong length")
	}
	return raw, err
}

func normal(text string) string { return tolerant.Replace(strings.ToUpper(text)) }

// Hash is how a code is stored. Its secret has enough entropy for a plain hash.
func (c Code) Hash() string {
	sum := sha256.Sum256(append([]byte("weir authorization\n"), c.secret[:]...))
	return fmt.Sprintf("%x", sum)
}

var tolerant = strings.NewReplacer("-", "", " ", "", "\t", "", "\n", "", "\r", "", "O", "0", "I", "1", "L", "1")

// ParseCode reads a code like [DecodeCode]. Errors do not contain the code.
func ParseCode(text string) (Code, error) {
	if len(text) > 10*codeLength {
		return Code{}, errors.New("too long for an authorization code")
	}
	if n := len(normal(text)); n != codeLength {
		return Code{}, fmt.Errorf("an authorization code has %d letters and digits, this has %d", codeLength, n)
	}
	raw, err := DecodeCode(text)
	if err != nil {
		return Code{}, errors.New("an authorization code has only digits and letters other than U")
	}
	return Code{secret: [16]byte(raw[:16]), Fingerprint: Fingerprint(raw[16:])}, nil
}
