package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
)

func (a rest) passwordsOperations(s section) {
	register(a, s, route{http.MethodPost, "/users/{id}/password-link", 201, "create-password-link",
		models.Say("Create a one-time link with which a user sets a new password; using it ends all sessions, revokes all tokens and removes all passkeys")}, a.createPasswordLink)
	registerPublic(a, s, route{http.MethodPost, "/password/forgot", 204, "forgot-password",
		models.Say("Send a link for a new password to an email address, if an account has it; the response is the same if none has")}, a.forgotPassword, http.StatusTooManyRequests)
	registerPublic(a, s, route{http.MethodPost, "/password", 204, "set-password", models.Say("Set a new password with a one-time link")},
		a.setPassword)
}

// PasswordLink is a one-time link for a new password.
type PasswordLink struct {
	URL       string    `json:"url" doc:"one-time link; returned only once"`
	ExpiresAt time.Time `json:"expires_at"`
}

func (a rest) createPasswordLink(ctx context.Context, in *ByID) (*Response[PasswordLink], error) {
	l, err := a.Accounts.CreatePasswordLink(ctx, actorOf(ctx), in.ID)
	return &Response[PasswordLink]{PasswordLink{a.portalURL(httpRequestOf(ctx)) + l.Path(), l.ExpiresAt.UTC()}}, err
}

// ForgottenPassword names the account whose password was forgotten.
type ForgottenPassword struct {
	Email string `json:"email" maxLength:"254"`
}

func (a rest) forgotPassword(ctx context.Context, in *Create[ForgottenPassword]) (*Nothing, error) {
	return nil, a.Accounts.ForgotPassword(ctx, in.Body.Email)
}

// LinkedPassword is a new password, set with a link.
type LinkedPassword struct {
	Token    string `json:"token" maxLength:"200" doc:"the secret in the link"`
	Password string `json:"password" maxLength:"1000" doc:"new password; at least 10 characters"`
}

func (a rest) setPassword(ctx context.Context, in *Create[LinkedPassword]) (*Nothing, error) {
	_, err := a.Accounts.SetPasswordByLink(ctx, in.Body.Token, in.Body.Password)
	return nil, err
}
