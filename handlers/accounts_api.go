package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/policies"
)

func (a rest) accountsOperations(s section) {
	register(a, s, route{http.MethodGet, "/me", 200, "get-me", models.Say("Get the authenticated user and their memberships")}, a.getMe)
	register(a, s, route{http.MethodPut, "/me", 200, "update-me", models.Say("Update your account")}, a.updateMe)
	register(a, s, route{http.MethodGet, "/me/sessions", 200, "list-sessions",
		models.Say("List your sessions in browsers, the one that began last first")}, a.listSessions)
	register(a, s, route{http.MethodDelete, "/me/sessions/{id}", 204, "end-session", models.Say("End another session of yours")}, a.endSession)
	register(a, s, route{http.MethodDelete, "/me/sessions", 204, "end-sessions", models.Say("End all your other sessions")}, a.endSessions)
	register(a, s, route{http.MethodPut, "/me/password", 204, "change-password",
		models.Say("Change your password; ends all other sessions and revokes all tokens")}, a.changePassword, http.StatusTooManyRequests)
	register(a, s, route{http.MethodGet, "/tokens", 200, "list-tokens", models.Say("List your access tokens, newest first")}, a.listTokens)
	register(a, s, route{http.MethodPost, "/tokens", 201, "create-token",
		models.Say("Create an access token; the secret is returned only once")}, a.createToken)
	register(a, s, route{http.MethodDelete, "/tokens/{id}", 204, "delete-token", models.Say("Revoke an access token")}, a.deleteToken)
}

// Token is a personal access token without its secret.
type Token struct {
	ID         int64               `json:"id"`
	Name       string              `json:"name"`
	Scopes     []models.TokenScope `json:"scopes" enum:"read,launch,project,admin" doc:"what the token can be used for; launch and project include read, admin includes project"`
	ExpiresAt  time.Time           `json:"expires_at"`
	LastUsedAt *time.Time          `json:"last_used_at,omitempty"`
	CreatedAt  time.Time           `json:"created_at"`

	LastUsedFrom string `json:"last_used_from,omitempty" doc:"address from which it was last used; absent if not known"`
}

func tokenOf(t models.AccessToken) Token {
	return Token{t.ID, t.Name, t.Scopes, t.ExpiresAt.UTC(), utc(t.LastUsedAt), t.CreatedAt.UTC(), t.LastUsedFrom}
}

// NewToken is a token with its secret.
type NewToken struct {
	Token
	Secret string `json:"secret" doc:"token secret; returned only once"`
}

func (a rest) getMe(ctx context.Context, _ *struct{}) (*Found[Person], error) {
	actor := actorOf(ctx)
	mine, err := a.Projects.Memberships(ctx, actor, actor.User.ID)
	me, err := a.withIdentities(ctx, personOf(actor.User, mine, a.Store.Now()), err)
	return found(actor.User.Version, me, err)
}

func (a rest) updateMe(ctx context.Context, in *UpdateSingleton[policies.SelfChange]) (*Found[Person], error) {
	in.Body.Version = in.version
	u, err := a.Accounts.UpdateSelf(ctx, actorOf(ctx), in.Body)
	me, err := a.personFound(ctx, u, err)
	return found(u.Version, me, err)
}

// Session is a session of a browser.
type Session struct {
	ID        int64      `json:"id"`
	Present   bool       `json:"present" doc:"the request was made in it"`
	Address   string     `json:"address" doc:"network address of the browser when the session began"`
	UserAgent string     `json:"user_agent" doc:"how the browser called itself then"`
	BeganAt   *time.Time `json:"began_at,omitempty" doc:"time of the sign-in"`
	UsedAt    *time.Time `json:"used_at,omitempty" doc:"time of the last use, to within 5 minutes; absent if it was not used since it began"`
	ExpiresAt time.Time  `json:"expires_at"`
}

func (a rest) listSessions(ctx context.Context, in *Paging) (*Response[List[Session]], error) {
	actor := actorOf(ctx)
	all, err := a.Accounts.Sessions(ctx, actor)
	return listedAll(*in, models.Session.ID, all, err, func(s models.Session) Session {
		return Session{s.ID(), s.Token == actor.Session, s.Address, s.UserAgent, utc(s.BeganAt), utc(s.UsedAt), s.ExpiresAt.UTC()}
	})
}

func (a rest) endSession(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Accounts.EndSession(ctx, actorOf(ctx), in.ID)
}

func (a rest) endSessions(ctx context.Context, _ *struct{}) (*Nothing, error) {
	return nil, a.continueSession(ctx, a.Accounts.EndSessions(ctx, actorOf(ctx)))
}

// PasswordChange replaces one's own password.
type PasswordChange struct {
	Current  string `json:"current" maxLength:"1000" doc:"current password"`
	Password string `json:"password" maxLength:"1000" doc:"new password; at least 10 characters"`
}

func (a rest) changePassword(ctx context.Context, in *Create[PasswordChange]) (*Nothing, error) {
	return nil, a.continueSession(ctx, a.Accounts.ChangePassword(ctx, actorOf(ctx), in.Body.Current, in.Body.Password))
}

func (a rest) listTokens(ctx context.Context, in *Paging) (*Response[List[Token]], error) {
	all, err := a.Accounts.Tokens(ctx, actorOf(ctx))
	return listedAll(*in, func(t models.AccessToken) int64 { return t.ID }, all, err, tokenOf)
}

// TokenInput is the input for creating an access token.
type TokenInput struct {
	policies.NewToken
	Lifetime string `json:"lifetime,omitempty" maxLength:"50" doc:"lifetime as a duration, 1 minute to 366 days; default 720h" example:"720h"`
}

// token is the input of the service.
func (in TokenInput) token() (policies.NewToken, error) {
	if in.Lifetime == "" {
		return in.NewToken, nil
	}
	lifetime, err := time.ParseDuration(in.Lifetime)
	if err != nil || lifetime <= 0 {
		return in.NewToken, models.Invalid("lifetime", "must be a duration such as 720h")
	}
	in.NewToken.Lifetime = lifetime
	return in.NewToken, nil
}

func (a rest) createToken(ctx context.Context, in *Create[TokenInput]) (*Created[NewToken], error) {
	input, err := in.Body.token()
	if err != nil {
		return nil, err
	}
	t, secret, err := a.Accounts.CreateToken(ctx, actorOf(ctx), input)
	return created(0, NewToken{tokenOf(t), secret}, err, "tokens", t.ID)
}

func (a rest) deleteToken(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Accounts.DeleteToken(ctx, actorOf(ctx), in.ID)
}
