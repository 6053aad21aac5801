package policies

import (
	"cmp"
	"context"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
)

// Lifetimes of personal access tokens.
const (
	DefaultTokenLifetime = 30 * 24 * time.Hour
	MaxTokenLifetime     = 366 * 24 * time.Hour
)

// MaxTokens is how many tokens an account can have. What is created at the same moment may
// exceed it; each is listed.
const MaxTokens = 100

// NewToken is the input for creating a personal access token.
type NewToken struct {
	Name     string              `json:"name" maxLength:"100" doc:"token name"`
	Scopes   []models.TokenScope `json:"scopes,omitempty" maxItems:"4" enum:"read,launch,project,admin" doc:"what the token can be used for; launch and project include read, admin includes project; default read"`
	Lifetime time.Duration       `json:"-"`
}

// CreateToken creates a token for the actor and returns its secret, which is not
// stored. Without scopes the token can only read. An actor with a token cannot give a
// scope that its own token does not have.
func (a *Accounts) CreateToken(ctx context.Context, actor Actor, in NewToken) (t models.AccessToken, secret string, err error) {
	if err := actor.CheckUser(); err != nil {
		return t, "", err
	}
	return a.createToken(ctx, actor, actor.User.ID, in)
}

// CreateTokenFor creates a token for another user. Only system actors may: the
// command line has access to the database anyway. Without scopes the token has all.
func (a *Accounts) CreateTokenFor(ctx context.Context, actor Actor, email string, in NewToken) (
	t models.AccessToken, secret string, err error) {
	if actor.System == "" {
		return t, "", models.Forbidden("Your role does not allow this. Contact a project manager or a platform administrator.")
	}
	u, err := a.store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(email)))
	if err == nil && u.IsService() {
		err = models.Conflict("Tokens of service accounts are created in their project.")
	}
	if err != nil {
		return t, "", err
	}
	if len(in.Scopes) == 0 {
		in.Scopes = models.TokenScopes
	}
	return a.createToken(ctx, actor, u.ID, in)
}

func (a *Accounts) createToken(ctx context.Context, actor Actor, userID int64, in NewToken) (
	t models.AccessToken, secret string, err error) {
	if err := in.Check(); err != nil {
		return t, "", err
	}
	err = a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		t, secret, err = newToken(q, actor, userID, Platform, in)
		return err
	})
	return t, secret, err
}

// Check validates and normalizes the input.
func (in *NewToken) Check() error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.Scopes = models.CheckScopes("scopes", in.Scopes, &p)
	if len(in.Scopes) == 0 {
		in.Scopes = []models.TokenScope{models.ScopeRead}
	}
	in.Lifetime = cmp.Or(in.Lifetime, DefaultTokenLifetime)
	if in.Lifetime < time.Minute || in.Lifetime > MaxTokenLifetime {
		p.Add("lifetime", "must be between 1 minute and %d days", int64(MaxTokenLifetime/(24*time.Hour)))
	}
	return p.Err()
}

// newToken stores a token of a user; project is that of a service account. A token that is
// created with a token expires with it at the latest.
func newToken(q *store.Queries, actor Actor, userID, project int64, in NewToken) (t models.AccessToken, secret string, err error) {
	for _, s := range in.Scopes {
		if actor.Scopes != nil && !models.Covers(actor.Scopes, s) {
			return t, "", models.InsufficientScope(s)
		}
	}
	now := q.Now()
	switch n, err := q.CountAccessTokens(userID, now); {
	case err != nil:
		return t, "", err
	case n >= MaxTokens:
		return t, "", models.Conflict("The account has %d access tokens, of at most %d. Revoke one that is not used any more first.",
			n, int64(MaxTokens))
	}
	until := now.Add(in.Lifetime)
	if !actor.Expires.IsZero() && until.After(actor.Expires) {
		until = actor.Expires // a leaked token must not give itself a longer life
	}
	secret = TokenPrefix + NewSecret()
	t = models.AccessToken{UserID: userID, Name: in.Name, Scopes: in.Scopes, Hash: HashSecret(secret), ExpiresAt: until, CreatedAt: now}
	if err := q.CreateAccessToken(&t); err != nil {
		return t, "", err
	}
	return t, secret, actor.Audit(q, Change{Action: "create", Object: "token", ID: t.ID, Project: project, After: auditToken(t)})
}

// auditToken is a token in the audit, without the secret.
func auditToken(t models.AccessToken) map[string]any {
	return map[string]any{"user_id": t.UserID, "name": t.Name, "scopes": t.Scopes, "expires_at": t.ExpiresAt}
}

// Tokens lists the actor's tokens.
func (a *Accounts) Tokens(ctx context.Context, actor Actor) ([]models.AccessToken, error) {
	if err := actor.CheckUser(); err != nil {
		return nil, err
	}
	return a.store.Read(ctx).AccessTokens(actor.User.ID)
}

// DeleteToken revokes one of the actor's tokens.
func (a *Accounts) DeleteToken(ctx context.Context, actor Actor, id int64) error {
	return a.access.WriteSelf(ctx, a.store, actor, func(q *store.Queries) error {
		return deleteToken(q, actor, actor.User.ID, Platform, id)
	})
}

// deleteToken removes a token of a user; project is that of a service account.
func deleteToken(q *store.Queries, actor Actor, userID, project, id int64) error {
	tokens, err := q.AccessTokens(userID)
	if err != nil {
		return err
	}
	if err := q.DeleteAccessToken(userID, id); err != nil {
		return err
	}
	change := Change{Action: "delete", Object: "token", ID: id, Project: project}
	for _, t := range tokens {
		if t.ID == id {
			change.Before = auditToken(t)
		}
	}
	return actor.Audit(q, change)
}

// ActorByToken finds the actor of a personal access token.
func (a *Accounts) ActorByToken(ctx context.Context, secret string) (Actor, error) {
	if !strings.HasPrefix(secret, TokenPrefix) || len(secret) > 200 {
		return Actor{}, invalidToken(nil)
	}
	t, err := a.token(ctx, HashSecret(secret))
	if err != nil {
		return Actor{}, invalidToken(err)
	}
	actor, err := a.Load(ctx, t.UserID)
	if err != nil {
		return Actor{}, invalidToken(err)
	}
	actor.Session, actor.Scopes, actor.Expires, actor.Via = t.Hash, t.Scopes, t.ExpiresAt, "token "+t.Name
	return actor, nil
}

func invalidToken(err error) error {
	if models.KindOf(err) == models.KindInternal {
		return err
	}
	return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("The token is invalid or has expired.")}
}
