package notifications

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	"weir/models"
	"weir/policies"
)

const secretPrefix = "whsec_"

func newSecret() string { return secretPrefix + policies.NewSecret() }

// NewKey derives the key that encrypts the secrets of webhooks.
func NewKey(secret []byte) (policies.Key, error) {
	return policies.NewKey(secret, "weir secrets of webhooks")
}

// secretsOf are the valid secrets of a webhook, decrypted: two during a rotation.
func secretsOf(k policies.Key, w models.Webhook, now time.Time) ([]string, error) {
	secret, err := k.Decrypt(w.Secret)
	if err != nil {
		return nil, err
	}
	if w.OldUntil == nil || !now.Before(*w.OldUntil) {
		return []string{secret}, nil
	}
	old, err := k.Decrypt(w.OldSecret)
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
