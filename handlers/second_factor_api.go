package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/policies"
)

func (a rest) secondFactorOperations(s section) {
	register(a, s, route{http.MethodGet, "/me/second-factor", 200, "get-second-factor",
		models.Say("Get the state of your second factor")}, a.getSecondFactor)
	register(a, s, route{http.MethodPost, "/me/second-factor", 200, "begin-second-factor",
		models.Say("Set up an authenticator app; it is enabled when confirmed")}, a.beginSecondFactor, http.StatusTooManyRequests)
	register(a, s, route{http.MethodPost, "/me/second-factor/confirm", 200, "confirm-second-factor",
		models.Say("Enable the new authenticator app with one of its codes; ends all other sessions")},
		a.confirmSecondFactor, http.StatusTooManyRequests)
	register(a, s, route{http.MethodPost, "/me/second-factor/recovery-codes", 200, "create-recovery-codes",
		models.Say("Replace your recovery codes; they are returned only once")}, a.createRecoveryCodes, http.StatusTooManyRequests)
	register(a, s, route{http.MethodPost, "/me/second-factor/disable", 204, "disable-second-factor",
		models.Say("Disable your second factor; ends all other sessions")}, a.disableSecondFactor, http.StatusTooManyRequests)
}

// signInPolicyOperations are about the second factors of others.
func (a rest) signInPolicyOperations(s section) {
	register(a, s, route{http.MethodDelete, "/users/{id}/second-factor", 204, "reset-second-factor",
		models.Say("Remove the second factor of a user who has lost it; ends all sessions")}, a.resetSecondFactor)
	register(a, s, route{http.MethodGet, "/sign-in-policy", 200, "get-sign-in-policy",
		models.Say("Get who must have a second factor; requires platform administrator")}, a.getSignInPolicy)
	register(a, s, route{http.MethodPut, "/sign-in-policy", 200, "set-sign-in-policy",
		models.Say("Set who must have a second factor; ends the sessions of those who lack it")}, a.setSignInPolicy)
}

// SecondFactor is the state of one's own second factor.
type SecondFactor struct {
	EnabledAt     *time.Time `json:"enabled_at,omitempty" doc:"absent if none is enabled"`
	RecoveryCodes int64      `json:"recovery_codes" doc:"number of unused recovery codes"`
	Required      bool       `json:"required" doc:"the sign-in policy requires one"`
	Available     bool       `json:"available" doc:"the account has a password"`
}

func (a rest) getSecondFactor(ctx context.Context, _ *struct{}) (*Response[SecondFactor], error) {
	s, err := a.Accounts.SecondFactor(ctx, actorOf(ctx))
	return &Response[SecondFactor]{SecondFactor{utc(s.EnabledAt), s.RecoveryCodes, s.Required, s.Available}}, err
}

// NewSecondFactor is an authenticator app that is not confirmed.
type NewSecondFactor struct {
	Secret    string    `json:"secret" doc:"TOTP secret in base 32 (RFC 6238: SHA-1, 6 digits, 30 seconds); returned only once"`
	URI       string    `json:"uri" doc:"the same as an otpauth URI, for a QR code"`
	ExpiresAt time.Time `json:"expires_at" doc:"until when it can be confirmed"`
}

func (a rest) beginSecondFactor(ctx context.Context, in *Create[policies.Proof]) (*Response[NewSecondFactor], error) {
	e, err := a.Accounts.BeginSecondFactor(ctx, actorOf(ctx), in.Body)
	return &Response[NewSecondFactor]{NewSecondFactor{e.Secret, e.URI, e.ExpiresAt.UTC()}}, err
}

// CodeInput is a code of a new authenticator app.
type CodeInput struct {
	Code string `json:"code" maxLength:"100" doc:"6 digits"`
}

// RecoveryCodes sign in in place of the authenticator app, each once.
type RecoveryCodes struct {
	Codes []string `json:"recovery_codes" doc:"returned only once"`
}

func recoveryCodesOf(codes []string, err error) (*Response[RecoveryCodes], error) {
	return &Response[RecoveryCodes]{RecoveryCodes{codes}}, err
}

func (a rest) confirmSecondFactor(ctx context.Context, in *Create[CodeInput]) (*Response[RecoveryCodes], error) {
	codes, err := a.Accounts.ConfirmSecondFactor(ctx, actorOf(ctx), in.Body.Code)
	return recoveryCodesOf(codes, a.continueSession(ctx, err))
}

func (a rest) createRecoveryCodes(ctx context.Context, in *Create[policies.Proof]) (*Response[RecoveryCodes], error) {
	return recoveryCodesOf(a.Accounts.NewRecoveryCodes(ctx, actorOf(ctx), in.Body))
}

func (a rest) disableSecondFactor(ctx context.Context, in *Create[policies.Proof]) (*Nothing, error) {
	return nil, a.continueSession(ctx, a.Accounts.DisableSecondFactor(ctx, actorOf(ctx), in.Body))
}

func (a rest) resetSecondFactor(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Accounts.ResetSecondFactor(ctx, actorOf(ctx), in.ID)
}

func (a rest) getSignInPolicy(ctx context.Context, _ *struct{}) (*Found[models.SignInPolicy], error) {
	p, err := a.Accounts.SignInPolicy(ctx, actorOf(ctx))
	return found(p.Version, p, err)
}

func (a rest) setSignInPolicy(ctx context.Context, in *UpdateSingleton[policies.SignInPolicyInput]) (*Found[models.SignInPolicy], error) {
	in.Body.Version = in.version
	p, err := a.Accounts.SetSignInPolicy(ctx, actorOf(ctx), in.Body)
	return found(p.Version, p, err)
}
