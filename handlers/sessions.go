package handlers

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/web"
)

// What a session remembers.
const (
	sessionUser       = "user"
	sessionGeneration = "epoch" // stored in sessions under the former name
	sessionFlash      = "flash"
	sessionProvider   = "provider" // it began with an identity provider
	sessionPending    = "pending"  // a sign-in before its next step
	sessionNext       = "next"     // the page after it
	sessionBegan      = "began"    // Unix time
	sessionAddress    = "address"  // of the client, then
	sessionUserAgent  = "user agent"
)

func newSessions(c Config) *scs.SessionManager {
	m := scs.New()
	m.Store = sessionStore{c.Store, c.Accounts}
	m.Lifetime = c.SessionLifetime
	m.Cookie.Name = SessionCookie(c.Secure)
	m.Cookie.Secure = c.Secure
	m.Cookie.SameSite = http.SameSiteLaxMode
	m.Cookie.HttpOnly = true
	m.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		if r.Context().Err() == nil { // its client has not gone
			c.Logger.ErrorContext(r.Context(), "session", "err", err)
		}
		http.Error(w, "The database does not answer. Try again in a moment.", http.StatusServiceUnavailable)
	}
	return m
}

// sessionStore stores sessions in the database by the hash of their token.
type sessionStore struct {
	store    *store.Store
	accounts *policies.Accounts
}

func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	row, err := s.accounts.Session(ctx, policies.HashSecret(token))
	if models.KindOf(err) == models.KindNotFound {
		return nil, false, nil
	}
	return row.Data, err == nil, err
}

func (s sessionStore) CommitCtx(ctx context.Context, token string, data []byte, expires time.Time) error {
	row := models.Session{Token: policies.HashSecret(token), Data: data, ExpiresAt: expires.UTC()}
	if err := describeSession(&row); err != nil {
		return err
	}
	return s.store.InTx(ctx, func(q *store.Queries) error { return q.PutSession(row) })
}

// describeSession sets whose a session is and where it began, if somebody is signed in.
func describeSession(row *models.Session) error {
	_, values, err := scs.GobCodec{}.Decode(row.Data)
	if err != nil {
		return err
	}
	user, ok := values[sessionUser].(int64)
	if !ok {
		return nil
	}
	row.UserID = &user
	row.Generation, _ = values[sessionGeneration].(int64)
	row.Address, _ = values[sessionAddress].(string)
	row.UserAgent, _ = values[sessionUserAgent].(string)
	if began, ok := values[sessionBegan].(int64); ok {
		at := time.Unix(began, 0).UTC()
		row.BeganAt = &at
	}
	return nil
}

func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.store.InRevokingTx(ctx, func(q *store.Queries) error { return q.DeleteSession(policies.HashSecret(token)) })
}

func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

func (s sessionStore) Commit(token string, data []byte, expires time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expires)
}

func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }

// beginSession signs a user in to a session with a new token.
func (a *App) beginSession(ctx context.Context, u models.User, byProvider bool) error {
	if err := a.sessions.RenewToken(ctx); err != nil {
		return err
	}
	a.sessions.Remove(ctx, sessionPending)
	a.sessions.Remove(ctx, sessionNext)
	a.sessions.Put(ctx, sessionUser, u.ID)
	a.sessions.Put(ctx, sessionGeneration, u.SessionGeneration)
	a.sessions.Put(ctx, sessionProvider, byProvider)
	a.sessions.Put(ctx, sessionBegan, a.Store.Now().Unix())
	a.sessions.Put(ctx, sessionAddress, policies.ClientAddress(ctx))
	a.sessions.Put(ctx, sessionUserAgent, policies.UserAgent(ctx))
	return nil
}

// bySession is the actor of the session; the zero Actor if it has ended, its generation
// is outdated, or its account lacks a second factor that is required.
func (a *App) bySession(ctx context.Context) (policies.Actor, error) {
	id := a.sessions.GetInt64(ctx, sessionUser)
	if id == 0 {
		return policies.Actor{}, nil
	}
	actor, err := a.Accounts.Load(ctx, id)
	if err != nil {
		if models.KindOf(err) == models.KindUnauthenticated {
			return policies.Actor{}, nil
		}
		return policies.Actor{}, err
	}
	if actor.User.SessionGeneration != a.sessions.GetInt64(ctx, sessionGeneration) {
		return policies.Actor{}, nil
	}
	actor.Session, actor.Via = policies.HashSecret(a.sessions.Token(ctx)), policies.ViaSession
	if actor.ByProvider = a.sessions.GetBool(ctx, sessionProvider); actor.MustEnroll() {
		return policies.Actor{}, nil
	}
	return actor, nil
}

// flash is a message for the page to which a redirect leads. No other page takes it: the
// same person can have several open.
type flash struct {
	To    string // a path
	Until time.Time
	web.Flash
}

// flashLifetime is how long a message waits for its page.
const flashLifetime = time.Minute

// flash stores a message for the page at to, an address of this portal.
func (a *App) flash(ctx context.Context, to, kind string, message models.Text) {
	u, err := url.Parse(to)
	if err != nil || message.Empty() {
		return
	}
	b, err := json.Marshal(flash{u.Path, a.Store.Now().Add(flashLifetime), web.Flash{Kind: kind, Text: message}})
	if err == nil {
		a.sessions.Put(ctx, sessionFlash, string(b))
	}
}

// takeFlash is the message for the page at a path; the zero Flash if there is none.
func (a *App) takeFlash(ctx context.Context, path string) web.Flash {
	stored := a.sessions.GetString(ctx, sessionFlash)
	if stored == "" {
		return web.Flash{}
	}
	var f flash
	err := json.Unmarshal([]byte(stored), &f)
	expired := err != nil || a.Store.Now().After(f.Until)
	if !expired && f.To != path {
		return web.Flash{}
	}
	a.sessions.Remove(ctx, sessionFlash)
	if expired {
		return web.Flash{}
	}
	return f.Flash
}

type actorKey struct{}

// actorOf is the actor of the request; the zero Actor if nobody is signed in.
func actorOf(ctx context.Context) policies.Actor {
	actor, _ := ctx.Value(actorKey{}).(policies.Actor)
	return actor
}

func withActor(ctx context.Context, actor policies.Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, actor)
}

// continueSession lets the browser that ended the sessions of its own account, unless err prevented
// it, go on in a session of the new generation, which ends when the former would have. It is for the
// session by which the request was authenticated, and not if somebody has ended the sessions once more.
func (a *App) continueSession(ctx context.Context, err error) error {
	before := actorOf(ctx)
	if err != nil || a.sessions.GetInt64(ctx, sessionUser) != before.User.ID || before.Via != policies.ViaSession {
		return err
	}
	actor, err := a.Accounts.Load(ctx, before.User.ID)
	if err != nil {
		return err
	}
	if actor.User.SessionGeneration != before.User.SessionGeneration+1 {
		return nil
	}
	until, began := a.sessions.Deadline(ctx), map[string]any{}
	for _, name := range []string{sessionBegan, sessionAddress, sessionUserAgent} {
		began[name] = a.sessions.Get(ctx, name)
	}
	if err := a.beginSession(ctx, actor.User, a.sessions.GetBool(ctx, sessionProvider)); err != nil {
		return err
	}
	for name, value := range began {
		if value != nil { // it began with an earlier version
			a.sessions.Put(ctx, name, value)
		}
	}
	a.sessions.SetDeadline(ctx, until)
	return nil
}

type cursorKey struct{}

// rememberLanguage stores the user's language for emails. Errors are only logged.
func (a *App) rememberLanguage(c echo.Context, actor policies.Actor, language string) {
	if actor.User.ID == 0 {
		return
	}
	if err := a.Notifications.SetLanguage(c.Request().Context(), actor, language); err != nil {
		a.Logger.WarnContext(c.Request().Context(), "a reader's language is not kept", "err", err)
	}
}
