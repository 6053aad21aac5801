package web

import "weir/models"

// AccountView is the reader's own account.
type AccountView struct {
	Form          Form // current, password, password_again
	Identities    []models.Identity
	Notifications NotificationChoice
}

// hasPassword tells whether an account can be given a password: one that
// comes in by a provider and has none keeps none.
func hasPassword(u *models.User, identities []models.Identity) bool {
	return u == nil || u.PasswordHash != "" || len(identities) == 0
}
