package policies

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

// TokenPrefix begins every personal access token.
const TokenPrefix = "weir_"

// NewSecret makes 256 random bits, as 43 characters that fit into a URL.
func NewSecret() string {
	var b [32]byte
	rand.Read(b[:]) // never fails; see crypto/rand
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// HashSecret is how a random secret is stored. Secrets of NewSecret have enough
// entropy for a plain hash.
func HashSecret(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// Cost of argon2id: RFC 9106 section 4 and OWASP's password storage
// recommendation (19 MiB, 2 passes, 1 lane).
const (
	argonMemoryKiB = 19 * 1024
	argonPasses    = 2
	argonKeyBytes  = 32
)

// hashPassword returns a PHC string of argon2id.
func hashPassword(password string) string {
	var salt [16]byte
	rand.Read(salt[:])
	key := argon2.IDKey([]byte(password), salt[:], argonPasses, argonMemoryKiB, 1, argonKeyBytes)
	enc := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=1$%s$%s", argon2.Version, argonMemoryKiB, argonPasses,
		enc.EncodeToString(salt[:]), enc.EncodeToString(key))
}

// checkPassword compares a password with a PHC string.
func checkPassword(password, phc string) bool {
	var version int
	var memory, passes uint32
	var lanes uint8
	var rest string
	_, err := fmt.Sscanf(phc, "$argon2id$v=%d$m=%d,t=%d,p=%d$%s", &version, &memory, &passes, &lanes, &rest)
	if err != nil || version != argon2.Version || passes == 0 || lanes == 0 {
		return false
	}
	saltText, keyText, _ := strings.Cut(rest, "$")
	salt, err1 := base64.RawStdEncoding.DecodeString(saltText)
	key, err2 := base64.RawStdEncoding.DecodeString(keyText)
	if err1 != nil || err2 != nil || len(key) == 0 {
		return false
	}
	got := argon2.IDKey([]byte(password), salt, passes, memory, lanes, uint32(len(key)))
	return subtle.ConstantTimeCompare(got, key) == 1
}
