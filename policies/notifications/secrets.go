package notifications

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
)

const secretPrefix = "whsec_"

func newSecret() string { return secretPrefix + policies.NewSecret() }

// Key encrypts the secrets of webhooks, so that a copy of the database does not
// contain them: AES-256-GCM with a key derived by HKDF-SHA256.
type Key struct{ aead cipher.AEAD }

// NewKey derives a key from a secret that all servers of a portal share and that
// is not in the database.
func NewKey(secret []byte) (Key, error) {
	raw, err := hkdf.Key(sha256.New, secret, nil, "weir secrets of webhooks", 32)
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

func (k Key) encrypt(secret string) string {
	nonce := make([]byte, k.aead.NonceSize())
	rand.Read(nonce) // never fails; see crypto/rand
	return base64.RawStdEncoding.EncodeToString(k.aead.Seal(nonce, nonce, []byte(secret), nil))
}

func (k Key) decrypt(ciphertext string) (string, error) {
	raw, err := base64.RawStdEncoding.DecodeString(ciphertext)
	if err != nil || len(raw) < k.aead.NonceSize() {
		return "", errors.New("notifications: not an encrypted secret")
	}
	secret, err := k.aead.Open(nil, raw[:k.aead.NonceSize()], raw[k.aead.NonceSize():], nil)
	return string(secret), err
}

// secretsOf are the valid secrets of a webhook: two during a rotation.
func (k Key) secretsOf(w models.Webhook, now time.Time) ([]string, error) {
	secret, err := k.decrypt(w.Secret)
	if err != nil {
		return nil, err
	}
	if w.OldUntil == nil || !now.Before(*w.OldUntil) {
		return []string{secret}, nil
	}
	old, err := k.decrypt(w.OldSecret)
	return []string{secret, old}, err
}

// signature is a header in the form of Stripe's (stripe.com/docs/webhooks,
// “Verify webhook signatures manually”): t is the time in seconds since 1970,
// each v1 the HMAC-SHA256, in hexadecimal digits, with one secret over the
// time, a full stop and the body. The signed time prevents replays.
func signature(secrets []string, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	var b strings.Builder
	b.WriteString("t=" + t)
	for _, secret := range secrets {
		mac := hmac.New(sha256.New, []byte(secret))
		fmt.Fprintf(mac, "%s.%s", t, body)
		b.WriteString(",v1=" + hex.EncodeToString(mac.Sum(nil)))
	}
	return b.String()
}
