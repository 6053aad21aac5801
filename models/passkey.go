package models

import "time"

// Passkey is a WebAuthn credential, with which the person of an account signs in without a
// password. Only its public key is stored.
type Passkey struct {
	ID             int64
	UserID         int64
	Name           string
	CredentialID   []byte    // chosen by the authenticator; unique
	UserHandle     []byte    // names the account to the authenticator, and no one else
	PublicKey      []byte    // COSE_Key
	SignCount      int64     // of the last signature; 0: the authenticator does not count
	BackupEligible bool      // can be synced between devices; never changes
	Transports     []string  `gorm:"serializer:json"`
	CeremonyAt     time.Time // when the ceremony began in which it was last accepted
	LastUsedAt     *time.Time
	CreatedAt      time.Time
}
