package web

import "weir/models"

// AccountView is the reader's own account.
type AccountView struct {
	Form          Form // current, password, password_again
	Self          Form // name, version
	Sessions      SessionsView
	Identities    []models.Identity
	SecondFactor  SecondFactor
	Passkeys      []models.Passkey
	PasskeyOrigin string // at which browsers have passkeys; empty: none
	Notifications NotificationChoice
}

// hasPassword reports whether an account can have a password: accounts that sign in
// with an identity provider cannot.
func hasPassword(u *models.User, identities []models.Identity) bool {
	return u == nil || u.PasswordHash != "" || len(identities) == 0
}
