package policies

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
)

// Key encrypts secrets that are stored and must be read again, so that a copy of the
// database does not contain them: AES-256-GCM with a key derived by HKDF-SHA256.
type Key struct{ aead cipher.AEAD }

// WorkspaceKey is the purpose of the [Key] of the secrets of workspaces and deployments.
const WorkspaceKey = "weir secrets of workspaces"

// NewKey derives a key for a purpose from a secret that all servers of a portal share
// and that is not in the database.
func NewKey(secret []byte, purpose string) (Key, error) {
	raw, err := hkdf.Key(sha256.New, secret, nil, purpose, 32)
	if err != nil {
		return Key{}, err
	}
	block, err := aes.NewCipher(raw)
	if err != nil {
		return Key{}, err
	}
	aead, err := cipher.NewGCM(block)
	return Key{aead}, err
}

// Encrypt returns a secret as it is stored.
func (k Key) Encrypt(secret string) string {
	nonce := make([]byte, k.aead.NonceSize())
	rand.Read(nonce) // never fails; see crypto/rand
	return base64.RawStdEncoding.EncodeToString(k.aead.Seal(nonce, nonce, []byte(secret), nil))
}

// Decrypt returns the secret of Encrypt. Another key, and a change of what is stored, are
// errors.
func (k Key) Decrypt(ciphertext string) (string, error) {
	raw, err := base64.RawStdEncoding.DecodeString(ciphertext)
	if err != nil || len(raw) < k.aead.NonceSize() {
		return "", errors.New("policies: not an encrypted secret")
	}
	secret, err := k.aead.Open(nil, raw[:k.aead.NonceSize()], raw[k.aead.NonceSize():], nil)
	return string(secret), err
}
