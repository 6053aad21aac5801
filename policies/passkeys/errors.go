package passkeys

import (
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
)

// ErrRefused is the result of a ceremony that is not a valid one of it.
var ErrRefused = errors.New("passkey refused")

// reasonOf is ErrRefused with the reason, which the library keeps apart from its message.
func reasonOf(err error) error {
	var e *protocol.Error
	if errors.As(err, &e) {
		return fmt.Errorf("%w: %s %s", ErrRefused, e.Details, e.DevInfo)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}
