package policies

import (
	"context"
	"strings"
	"time"

	"weir/models"
)

// Lifetimes of personal access tokens.
const (
	DefaultTokenLifetime = 30 * 24 * time.Hour
	MaxTokenLifetime     = 366 * 24 * time.Hour
)

// NewToken is the input for creating a personal access token.
type NewToken struct {
	Name     string        `json:"name" maxLength:"100" doc:"token name"`
	Lifetime time.Duration `json:"-"`
}

// CreateToken creates a token for the actor and returns its secret, which is not
// stored.
func (a *Accounts) CreateToken(ctx context.Context, actor Actor, in NewToken) (t models.AccessToken, secret string, err error) {
	if err := actor.CheckUser(); err != nil {
		return t, "", err
	}
	return a.createToken(ctx, actor, actor.User.ID, in)
}

// CreateTokenFor creates a token for another user. Only system actors may: the
// command line has access to the database anyway.
func (a *Accounts) CreateTokenFor(ctx context.Context, actor Actor, email string, in NewToken) (t models.AccessToken, secret string, err error) {
	if actor.System == "" {
		return t, "", models.Forbidden("Your role does not allow this. Contact a project manager or a platform administrator.")
	}
	u, err := a.store.Read(ctx).UserByEmail(strings.ToLower(strings.TrimSpace(email)))
	if err != nil {
		return t, "", err
	}
	return a.createToken(ctx, actor, u.ID, in)
}

func (a *Accounts) createToken(ctx context.Context, actor Actor, userID int64, in NewToken) (t models.AccessToken, secret string, err error) {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	if in.Lifetime == 0 {
		in.Lifetime = DefaultTokenLifetime
	}
	if in.Lifetime < time.Minute || in.Lifetime > MaxTokenLifetime {
		p.Add("lifetime", "must be between 1 minute and %d days", int64(MaxTokenLifetime/(24*time.Hour)))
	}
	if err := p.Err(); err != nil {
		return t, "", err
	}
	secret = TokenPrefix + NewSecret()
	err = a.access.WriteSelf(ctx, a.store, actor, func(q *models.Queries) error {
		now := q.Now()
		t = models.AccessToken{UserID: userID, Name: in.Name, Hash: HashSecret(secret), ExpiresAt: now.Add(in.Lifetime), CreatedAt: now}
		if err := q.CreateAccessToken(&t); err != nil {
			return err
		}
		return actor.Audit(q, Change{Action: "create", Object: "token", ID: t.ID, After: auditToken(t)})
	})
	return t, secret, err
}

// auditToken is a token in the audit, without the secret.
func auditToken(t models.AccessToken) map[string]any {
	return map[string]any{"user_id": t.UserID, "name": t.Name, "expires_at": t.ExpiresAt}
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
	return a.access.WriteSelf(ctx, a.store, actor, func(q *models.Queries) error {
		tokens, err := q.AccessTokens(actor.User.ID)
		if err != nil {
			return err
		}
		if err := q.DeleteAccessToken(actor.User.ID, id); err != nil {
			return err
		}
		change := Change{Action: "delete", Object: "token", ID: id}
		for _, t := range tokens {
			if t.ID == id {
				change.Before = auditToken(t)
			}
		}
		return actor.Audit(q, change)
	})
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
	actor.Session, actor.Via = t.Hash, "token "+t.Name
	return actor, nil
}

func invalidToken(err error) error {
	if err != nil && models.KindOf(err) == models.KindInternal {
		return err
	}
	return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("The token is invalid or has expired.")}
}
