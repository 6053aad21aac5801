package store

import (
	"slices"

	"gorm.io/gorm/clause"

	"weir/models"
)

// SignInPolicyKey is the revocation key of what the sign-in policy permits.
var SignInPolicyKey = RevocationKey("sign-in-policy", 1)

// SignInPolicy reads what sign-in requires.
func (q *Queries) SignInPolicy() (p models.SignInPolicy, err error) { return p, q.db.Take(&p, 1).Error }

// SetSignInPolicy writes p if its version is still p.Version. Whoever lacks what it
// requires is signed out: their visits of workspaces end, and their sessions are read again.
func (q *Queries) SetSignInPolicy(p *models.SignInPolicy) error {
	q.revoke(SignInPolicyKey)
	if err := q.update(p, &p.Version, p.ID, "setting"); err != nil || p.SecondFactor == models.NoOne {
		return err
	}
	var ids []int64
	db := q.db.Model(&models.User{}).Where("second_factor_at IS NULL AND password_hash <> ''")
	if p.SecondFactor == models.Administrators {
		db = db.Where("admin = ?", true)
	}
	if err := db.Pluck("id", &ids).Error; err != nil {
		return err
	}
	return q.EndVisits(ids)
}

// EndVisits ends the visits of users to workspaces and the links that begin one, and has their
// open connections checked again.
func (q *Queries) EndVisits(users []int64) error {
	for _, id := range users {
		q.Revoke("user", id)
	}
	for part := range slices.Chunk(users, 500) {
		if err := q.db.Where("user_id IN ? AND purpose = 'open'", part).Delete(&models.OneTimeToken{}).Error; err != nil {
			return err
		}
		if err := q.db.Where("user_id IN ?", part).Delete(&models.Visit{}).Error; err != nil {
			return err
		}
	}
	return nil
}

// SecondFactor finds the second factor of an account, or an enrollment of one.
func (q *Queries) SecondFactor(userID int64) (f models.SecondFactor, err error) {
	return f, found(q.db.Take(&f, "user_id = ?", userID).Error, "second factor")
}

// PutSecondFactor stores the second factor of an account.
func (q *Queries) PutSecondFactor(f models.SecondFactor) error {
	return q.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&f).Error
}

// AcceptStep records that a code of a step was accepted, and reports whether none of this
// step or a later one was before. Of concurrent callers one succeeds.
func (q *Queries) AcceptStep(userID, step int64) (bool, error) {
	res := q.db.Model(&models.SecondFactor{}).Where("user_id = ? AND step < ?", userID, step).Update("step", step)
	return res.RowsAffected > 0, res.Error
}

// DeleteSecondFactor removes the second factor of an account with its recovery codes.
func (q *Queries) DeleteSecondFactor(userID int64) error {
	if err := q.db.Where("user_id = ?", userID).Delete(&models.RecoveryCode{}).Error; err != nil {
		return err
	}
	return q.db.Where("user_id = ?", userID).Delete(&models.SecondFactor{}).Error
}

// SetRecoveryCodes replaces the recovery codes of an account.
func (q *Queries) SetRecoveryCodes(userID int64, hashes []string) error {
	if err := q.db.Where("user_id = ?", userID).Delete(&models.RecoveryCode{}).Error; err != nil {
		return err
	}
	codes := models.Map(hashes, func(h string) models.RecoveryCode { return models.RecoveryCode{UserID: userID, Hash: h} })
	return q.db.Create(&codes).Error
}

// TakeRecoveryCode removes a recovery code, and reports whether there was one.
func (q *Queries) TakeRecoveryCode(userID int64, hash string) (bool, error) {
	res := q.db.Where("user_id = ? AND hash = ?", userID, hash).Delete(&models.RecoveryCode{})
	return res.RowsAffected > 0, res.Error
}

// CountRecoveryCodes counts the recovery codes that an account can still use.
func (q *Queries) CountRecoveryCodes(userID int64) (n int64, err error) {
	return n, q.db.Model(&models.RecoveryCode{}).Where("user_id = ?", userID).Count(&n).Error
}
