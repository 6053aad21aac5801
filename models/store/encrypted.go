package store

import (
	"context"
	"reflect"
	"strings"

	"gorm.io/gorm/schema"
)

// Secrets encrypts what is stored and must be read again, so that a copy of the database does not
// contain it.
type Secrets interface {
	Encrypt(secret string) string
	Decrypt(ciphertext string) (string, error)
}

// encryptedPrefix distinguishes what is encrypted from what an earlier version has stored.
const encryptedPrefix = "enc:"

func init() { schema.RegisterSerializer("encrypted", encrypted{}) }

type secretsKey struct{}

// encrypted stores a text encrypted by the Secrets of its store. Without them, and where the key is
// another, it is passed on as it is stored: what needs it is refused, and all else goes on.
type encrypted struct{}

func (encrypted) Scan(ctx context.Context, field *schema.Field, dst reflect.Value, stored any) error {
	var text string
	switch v := stored.(type) {
	case string:
		text = v
	case []byte:
		text = string(v)
	}
	secrets, known := ctx.Value(secretsKey{}).(Secrets)
	if ciphertext, ok := strings.CutPrefix(text, encryptedPrefix); ok && known {
		if secret, err := secrets.Decrypt(ciphertext); err == nil {
			text = secret
		}
	}
	field.ReflectValueOf(ctx, dst).SetString(text)
	return nil
}

func (encrypted) Value(ctx context.Context, _ *schema.Field, _ reflect.Value, value any) (any, error) {
	text, _ := value.(string)
	if secrets, ok := ctx.Value(secretsKey{}).(Secrets); ok && text != "" && !strings.HasPrefix(text, encryptedPrefix) {
		return encryptedPrefix + secrets.Encrypt(text), nil
	}
	return text, nil
}
