package store

import (
	"time"

	"weir/models"
)

// Passkeys lists the passkeys of an account, oldest first.
func (q *Queries) Passkeys(userID int64) (list []models.Passkey, err error) {
	return list, q.db.Where("user_id = ?", userID).Order("id").Find(&list).Error
}

// Passkey finds a passkey of an account.
func (q *Queries) Passkey(userID, id int64) (p models.Passkey, err error) {
	return p, found(q.db.Take(&p, "user_id = ? AND id = ?", userID, id).Error, "passkey")
}

// CountPasskeys counts the passkeys of an account.
func (q *Queries) CountPasskeys(userID int64) (n int64, err error) {
	return n, q.db.Model(&models.Passkey{}).Where("user_id = ?", userID).Count(&n).Error
}

// PasskeyByCredential finds a passkey by the id that its authenticator gave it.
func (q *Queries) PasskeyByCredential(id []byte) (p models.Passkey, err error) {
	return p, found(q.db.Take(&p, "credential_id = ?", id).Error, "passkey")
}

// CreatePasskey stores a new passkey.
func (q *Queries) CreatePasskey(p *models.Passkey) error { return q.db.Create(p).Error }

// UsePasskey records that a passkey was accepted, in a ceremony that began later than any
// in which it was before, and reports whether that is so. Of concurrent callers with one
// ceremony one succeeds.
func (q *Queries) UsePasskey(id int64, ceremonyAt time.Time, signCount int64) (bool, error) {
	res := q.db.Model(&models.Passkey{}).Where("id = ? AND ceremony_at < ?", id, ceremonyAt.UTC()).
		Updates(map[string]any{"ceremony_at": ceremonyAt.UTC(), "sign_count": signCount, "last_used_at": q.Now()})
	return res.RowsAffected > 0, res.Error
}

// RenamePasskey gives a passkey another name.
func (q *Queries) RenamePasskey(id int64, name string) error {
	return q.db.Model(&models.Passkey{}).Where("id = ?", id).UpdateColumn("name", name).Error
}

// DeletePasskey removes a passkey.
func (q *Queries) DeletePasskey(id int64) error { return q.db.Delete(&models.Passkey{}, id).Error }

// DeletePasskeysOf removes all passkeys of an account, and returns how many there were.
func (q *Queries) DeletePasskeysOf(userID int64) (int64, error) {
	res := q.db.Where("user_id = ?", userID).Delete(&models.Passkey{})
	return res.RowsAffected, res.Error
}
