package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/policies"
)

func (a rest) accountOperations(s section) {
	register(a, s, route{http.MethodGet, "/me", 200, "get-me", "Show who you are and what you may hold in each project"}, a.getMe)
	register(a, s, route{http.MethodPut, "/me/password", 204, "change-password", "Change your password; all other sessions and your tokens end"}, a.changePassword)
	register(a, s, route{http.MethodGet, "/tokens", 200, "list-tokens", "List your access tokens, newest first"}, a.listTokens)
	register(a, s, route{http.MethodPost, "/tokens", 201, "create-token", "Create an access token; its secret is in this answer alone"}, a.createToken)
	register(a, s, route{http.MethodDelete, "/tokens/{id}", 204, "delete-token", "Revoke an access token"}, a.deleteToken)
}

func (a rest) userOperations(s section) {
	register(a, s, route{http.MethodGet, "/users", 200, "list-users", "List accounts"}, a.listUsers)
	register(a, s, route{http.MethodPost, "/users", 201, "create-user", "Create an account"}, a.createUser)
	register(a, s, route{http.MethodGet, "/users/{id}", 200, "get-user", "Show an account and its places in projects"}, a.getUser)
	register(a, s, route{http.MethodPut, "/users/{id}", 200, "update-user", "Change an account; disabling it ends its sessions and tokens"}, a.updateUser)
	register(a, s, route{http.MethodPut, "/users/{id}/password", 204, "reset-password", "Give an account a new password; its sessions and tokens end"}, a.resetPassword)
}

func (a rest) getMe(ctx context.Context, _ *struct{}) (*Found[Person], error) {
	actor := actorOf(ctx)
	mine, err := a.Ledger.Mine(ctx, actor)
	me, err := a.withIdentities(ctx, personOf(actor.User, mine, a.Store.Now()), err)
	return found(actor.User.Version, me, err)
}

// PasswordChange replaces one's own password.
type PasswordChange struct {
	Current  string `json:"current" maxLength:"1000" doc:"the present password"`
	Password string `json:"password" maxLength:"1000" doc:"the new one; at least 10 characters"`
}

func (a rest) changePassword(ctx context.Context, in *Create[PasswordChange]) (*Nothing, error) {
	actor := actorOf(ctx)
	if err := a.Accounts.ChangePassword(ctx, actor, in.Body.Current, in.Body.Password); err != nil {
		return nil, err
	}
	return nothing(a.passwordChanged(ctx, actor.User.ID))
}

func (a rest) listTokens(ctx context.Context, in *Paging) (*Answer[List[Token]], error) {
	all, err := a.Accounts.Tokens(ctx, actorOf(ctx))
	return listedWhole(*in, func(t models.AccessToken) int64 { return t.ID }, all, err, tokenOf)
}

// TokenInput asks for an access token.
type TokenInput struct {
	policies.NewToken
	Lifetime string `json:"lifetime,omitempty" maxLength:"50" doc:"such as 720h, which it is when absent; one minute to 366 days" example:"720h"`
}

func (a rest) createToken(ctx context.Context, in *Create[TokenInput]) (*Created[NewToken], error) {
	input := in.Body.NewToken
	if text := in.Body.Lifetime; text != "" {
		var err error
		if input.Lifetime, err = time.ParseDuration(text); err != nil || input.Lifetime <= 0 {
			return nil, models.Invalid("lifetime", "must be a duration such as 720h")
		}
	}
	t, secret, err := a.Accounts.CreateToken(ctx, actorOf(ctx), input)
	return created(0, NewToken{tokenOf(t), secret}, err, "tokens", t.ID)
}

func (a rest) deleteToken(ctx context.Context, in *ByID) (*Nothing, error) {
	return nothing(a.Accounts.DeleteToken(ctx, actorOf(ctx), in.ID))
}

// UsersQuery searches accounts.
type UsersQuery struct {
	Paging
	Search string `query:"q" maxLength:"200" doc:"part of a name or an address"`
}

func (a rest) listUsers(ctx context.Context, in *UsersQuery) (*Answer[List[User]], error) {
	return listed(in.Paging, personID, func(p models.Page) ([]personRow, error) { return a.peopleRows(ctx, in.Search, p) }, func(p personRow) User {
		u := userOf(p.User)
		u.Department = p.department
		return u
	})
}

func (a rest) createUser(ctx context.Context, in *Create[policies.NewUser]) (*Created[Person], error) {
	u, err := a.Accounts.CreateUser(ctx, actorOf(ctx), in.Body)
	return created(u.Version, personOf(u, nil, a.Store.Now()), err, "users", u.ID)
}

func (a rest) getUser(ctx context.Context, in *ByID) (*Found[Person], error) {
	u, err := a.Accounts.User(ctx, actorOf(ctx), in.ID)
	p, err := a.personFound(ctx, u, err)
	return found(u.Version, p, err)
}

func (a rest) updateUser(ctx context.Context, in *Update[policies.UserChange]) (*Found[Person], error) {
	var err error
	if in.Body.Version, err = in.version(); err != nil {
		return nil, err
	}
	u, err := a.Accounts.UpdateUser(ctx, actorOf(ctx), in.ID, in.Body)
	if err == nil {
		a.Wake()
	}
	p, err := a.personFound(ctx, u, err)
	return found(u.Version, p, err)
}

// PasswordInput is a new password.
type PasswordInput struct {
	Password string `json:"password" maxLength:"1000" doc:"at least 10 characters"`
}

// PasswordReset gives an account a new password.
type PasswordReset struct {
	ByID
	Body PasswordInput
}

func (a rest) resetPassword(ctx context.Context, in *PasswordReset) (*Nothing, error) {
	return nothing(a.Accounts.ResetPassword(ctx, actorOf(ctx), in.ID, in.Body.Password))
}
