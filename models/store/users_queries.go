package store

import (
	"strings"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"weir/models"
)

// CreateUser inserts u and sets its id. A taken email address is a Conflict.
func (q *Queries) CreateUser(u *models.User) error {
	return taken(q.db.Create(u).Error, "email", models.Say("An account with the email address %s already exists.", u.Email))
}

// UpdateUser writes u if its version is still u.Version, and increments it.
func (q *Queries) UpdateUser(u *models.User) error {
	q.changeShares() // the cached pool contains its name
	q.poolUsers = append(q.poolUsers, u.ID)
	q.Revoke("user", u.ID)
	return q.update(u, &u.Version, u.ID, "account")
}

// User finds an account by id.
func (q *Queries) User(id int64) (u models.User, err error) {
	return u, found(q.db.Take(&u, id).Error, "account")
}

// UserByEmail finds an account by its email address in lower case.
func (q *Queries) UserByEmail(email string) (u models.User, err error) {
	if !storable(email) {
		return u, models.NotFound("account")
	}
	return u, found(q.db.Where("email = ?", email).Take(&u).Error, "account")
}

// PersonByEmail finds the enabled account of a person who is named in an input's field
// email.
func (q *Queries) PersonByEmail(email string) (u models.User, err error) {
	if email = strings.ToLower(strings.TrimSpace(email)); email == "" {
		return u, models.Invalid("email", "must not be empty")
	}
	u, err = q.UserByEmail(email)
	if err == nil && u.IsService() {
		err = models.NotFound("account") // it belongs to its project
	}
	if err != nil {
		return u, models.NotFoundAs(err, models.Invalid("email", "no account has this email address; invite the person first"))
	}
	if u.Disabled {
		return u, models.Invalid("email", "belongs to a disabled account")
	}
	return u, nil
}

// CountUsers counts all accounts.
func (q *Queries) CountUsers() (n int64, err error) {
	return n, q.db.Model(&models.User{}).Count(&n).Error
}

// CountAdministrators counts the enabled administrators.
func (q *Queries) CountAdministrators() (n int64, err error) {
	return n, q.db.Model(&models.User{}).Where("admin = ? AND disabled = ?", true, false).Count(&n).Error
}

// Users lists accounts whose name or email address contains search, by id.
func (q *Queries) Users(search string, page Page) (users []models.User, err error) {
	if !storable(search) {
		return nil, nil
	}
	db := page.oldest(q.db, "id")
	if search != "" {
		db = db.Where(`(lower(name) LIKE ? ESCAPE '\' OR email LIKE ? ESCAPE '\')`, like(search), like(search))
	}
	return users, db.Find(&users).Error
}

// UsersNamed lists the accounts with a name, in any case, by id: all, or those who are or were
// members of a project.
func (q *Queries) UsersNamed(name string, project int64) (users []models.User, err error) {
	if !storable(name) {
		return nil, nil
	}
	db := q.db.Where("LOWER(name) = ?", strings.ToLower(name))
	if project != 0 {
		db = db.Where("id IN (SELECT user_id FROM members WHERE project_id = ?)", project)
	}
	return users, db.Order("id").Limit(PageSize).Find(&users).Error
}

// LockUsers locks the administrators: no other transaction can change them.
func (q *Queries) LockUsers() error {
	return q.lock("SELECT id FROM users WHERE admin ORDER BY id FOR NO KEY UPDATE")
}

// LockUser finds an account and locks it against changes until the transaction
// ends.
func (q *Queries) LockUser(id int64) (u models.User, err error) {
	return u, found(q.locking("SHARE").Take(&u, id).Error, "account")
}

// LockUserRows finds accounts, in the order of their IDs, and locks them as LockUser does.
func (q *Queries) LockUserRows(ids ...int64) (list []models.User, err error) {
	return list, q.locking("SHARE").Where("id IN ?", ids).Order("id").Find(&list).Error
}

// Authenticated lists those hashes that are of a valid session or access token, and locks
// these within a transaction.
func (q *Queries) Authenticated(now time.Time, hashes ...string) (valid []string, err error) {
	err = q.locking("SHARE").Table("sessions").Where(validSession, hashes, now).Order("token").Pluck("token", &valid).Error
	if err != nil || len(valid) == len(hashes) {
		return valid, err
	}
	var tokens []string
	err = q.locking("KEY SHARE").Table("access_tokens").Where("hash IN ? AND expires_at > ?", hashes, now).
		Order("hash").Pluck("hash", &tokens).Error
	return append(valid, tokens...), err
}

// CreateAccessToken inserts t; a taken name is a Conflict.
func (q *Queries) CreateAccessToken(t *models.AccessToken) error {
	return taken(q.db.Create(t).Error, "name", models.Say("You already have a token named %s.", t.Name))
}

// AccessTokens lists all of a user's tokens, newest first. Their number is bounded where they
// are created.
func (q *Queries) AccessTokens(userID int64) (tokens []models.AccessToken, err error) {
	return tokens, q.db.Where("user_id = ?", userID).Order("id DESC").Find(&tokens).Error
}

// CountAccessTokens removes a user's tokens that have expired, and counts the others.
func (q *Queries) CountAccessTokens(userID int64, now time.Time) (n int64, err error) {
	if err := q.db.Where("user_id = ? AND expires_at <= ?", userID, now).Delete(&models.AccessToken{}).Error; err != nil {
		return 0, err
	}
	return n, q.db.Model(&models.AccessToken{}).Where("user_id = ?", userID).Count(&n).Error
}

// AccessTokenByHash finds an unexpired token.
func (q *Queries) AccessTokenByHash(hash string, now time.Time) (t models.AccessToken, err error) {
	return t, found(q.db.Where("hash = ? AND expires_at > ?", hash, now).Take(&t).Error, "token")
}

// TouchAccessToken records when and from which address a token was last used.
func (q *Queries) TouchAccessToken(id int64, now time.Time, from string) error {
	return q.db.Model(&models.AccessToken{}).Where("id = ?", id).Updates(map[string]any{"last_used_at": now, "last_used_from": from}).Error
}

// DeleteAccessToken removes a user's token.
func (q *Queries) DeleteAccessToken(userID, id int64) error {
	q.Revoke("user", userID)
	return q.deleted(q.db.Where("user_id = ? AND id = ?", userID, id).Delete(&models.AccessToken{}), "token")
}

// DeleteTokensOf removes all of a user's tokens, including those for opening a
// workspace.
func (q *Queries) DeleteTokensOf(userID int64) error {
	q.Revoke("user", userID)
	if err := q.db.Where("user_id = ?", userID).Delete(&models.AccessToken{}).Error; err != nil {
		return err
	}
	return q.db.Where("user_id = ?", userID).Delete(&models.OneTimeToken{}).Error
}

// PutOneTimeToken stores a single-use secret.
func (q *Queries) PutOneTimeToken(t models.OneTimeToken) error { return q.db.Create(&t).Error }

// OneTimeToken finds a token that could be taken now.
func (q *Queries) OneTimeToken(hash, purpose string, now time.Time) (t models.OneTimeToken, err error) {
	return t, found(q.db.Where("hash = ? AND purpose = ? AND expires_at > ?", hash, purpose, now).Take(&t).Error, "link")
}

// TakeOneTimeToken removes and returns an unexpired token. Of concurrent callers
// one succeeds, the others get not_found.
func (q *Queries) TakeOneTimeToken(hash, purpose string, now time.Time) (t models.OneTimeToken, err error) {
	err = q.db.Raw("DELETE FROM one_time_tokens WHERE hash = ? AND purpose = ? AND expires_at > ? RETURNING *", hash, purpose,
		now).Scan(&t).Error
	if err == nil && t.Hash == "" {
		err = models.NotFound("link")
	}
	return t, err
}

// DeleteOneTimeTokens removes all tokens of a purpose.
func (q *Queries) DeleteOneTimeTokens(purpose string) error {
	return q.db.Where("purpose = ?", purpose).Delete(&models.OneTimeToken{}).Error
}

// PutVisit stores a browser's visit to a workspace.
func (q *Queries) PutVisit(v models.Visit) error { return q.db.Create(&v).Error }

// EndVisit ends a visit to a workspace, if there is one, and has the open connections of the
// workspace checked again.
func (q *Queries) EndVisit(hash string, workspace int64) error {
	res := q.db.Where("hash = ? AND workspace_id = ?", hash, workspace).Delete(&models.Visit{})
	if res.Error == nil && res.RowsAffected > 0 {
		q.Revoke("workspace", workspace)
	}
	return res.Error
}

// Admission is what the proxy needs to admit a request to a workspace, read in
// one query.
type Admission struct {
	WorkspaceID int64
	State       models.WorkspaceState
	Generation  int64
	Endpoint    models.Endpoint `gorm:"serializer:json"`
	Secret      string          `gorm:"serializer:encrypted"`
	UserID      int64
	ProjectID   int64
	Session     string // hash of the portal session or access token

	// What ends the admission by itself, if anything does.
	VisitUntil, SessionUntil, TokenUntil, MemberUntil, ProjectUntil *time.Time
}

// Validity is how long the admission is valid.
func (a Admission) Validity() Validity {
	v := Validity{Keys: []string{RevocationKey("user", a.UserID), RevocationKey("project", a.ProjectID),
		RevocationKey("workspace", a.WorkspaceID), SessionKey(a.Session)}}
	for _, t := range []*time.Time{a.VisitUntil, a.SessionUntil, a.TokenUntil, a.MemberUntil, a.ProjectUntil} {
		v.EndAt(t)
	}
	return v
}

// admission finds a workspace whose owner, membership and project are active, and whose
// owner's role permits launches. A project that had begun when the workspace was requested has
// begun also after the clock was set back.
func (q *Queries) admission(id int64, now time.Time, columns string) *gorm.DB {
	return q.db.Table("workspaces w").
		Select(`w.id AS workspace_id, w.state, w.generation, w.endpoint, w.secret, w.user_id, w.project_id,
			m.until AS member_until, p.ends_at AS project_until`+columns).
		Joins("JOIN users u ON u.id = w.user_id AND NOT u.disabled").
		Joins("JOIN members m ON m.id = w.member_id AND m.removed_at IS NULL AND (m.until IS NULL OR m.until > ?)", now).
		Joins("JOIN holders h ON h.id = w.holder_id").
		Joins("JOIN projects p ON p.id = w.project_id AND (p.starts_at <= ? OR p.starts_at <= h.requested_at) AND (p.ends_at IS NULL OR p.ends_at > ?)", now, now).
		Joins("JOIN roles ON roles.id = m.role_id AND NOT "+roleForbids).
		Where("w.id = ?", id)
}

// AdmitVisit finds the workspace of a visit, if the visit, the session or access
// token that began it, its user, and the user's membership and role are all valid.
func (q *Queries) AdmitVisit(hash string, workspaceID int64, now time.Time) (a Admission, err error) {
	err = q.admission(workspaceID, now, ", v.session, v.expires_at AS visit_until, s.expires_at AS session_until, t.expires_at AS token_until").
		Joins("JOIN visits v ON v.workspace_id = w.id AND v.user_id = w.user_id AND v.session_generation = u.session_generation AND v.hash = ? AND v.expires_at > ?", hash, now).
		Joins("LEFT JOIN sessions s ON s.token = v.session AND s.expires_at > ? AND length(s.data) > 0", now).
		Joins("LEFT JOIN access_tokens t ON t.hash = v.session AND t.expires_at > ?", now).
		Where("s.token IS NOT NULL OR t.id IS NOT NULL").Take(&a).Error
	return a, found(err, "workspace")
}

// AdmitOwner finds a user's own workspace, if the user, the membership and the role are valid.
func (q *Queries) AdmitOwner(userID, workspaceID int64, now time.Time) (a Admission, err error) {
	return a, found(q.admission(workspaceID, now, "").Where("w.user_id = ?", userID).Take(&a).Error, "workspace")
}

// DeleteExpired removes expired sessions, visits, single-use tokens and idempotency
// keys, and returns the number of the first three.
func (q *Queries) DeleteExpired(now time.Time) (int64, error) {
	var n int64
	for _, table := range []any{&models.Session{}, &models.Visit{}, &models.OneTimeToken{}} {
		before := now
		if _, session := table.(*models.Session); session {
			before = now.Add(-tombstone)
		}
		res := q.db.Where("expires_at <= ?", before).Delete(table)
		if res.Error != nil {
			return n, res.Error
		}
		n += res.RowsAffected
	}
	if err := q.db.Where("created_at <= ?", now.Add(-IdempotencyKeyLifetime)).Delete(&IdempotencyKey{}).Error; err != nil {
		return n, err
	}
	return n, q.db.Where("at <= ?", now.Add(-keepRevocations)).Delete(&Revocation{}).Error
}

// tombstone is the time for which a session is stored after its end, so that a concurrent
// request cannot create it again. One that was ended before is stored as long as if it had not been.
const tombstone = 10 * time.Minute

// PutSession stores a session, or replaces it if it has not ended.
func (q *Queries) PutSession(s models.Session) error {
	res := q.db.Model(&models.Session{}).Where(validSession, []string{s.Token}, q.Now()).
		Updates(map[string]any{"data": s.Data, "expires_at": s.ExpiresAt.UTC(), "user_id": s.UserID, "generation": s.Generation,
			"address": s.Address, "user_agent": s.UserAgent, "began_at": s.BeganAt})
	if res.Error != nil || res.RowsAffected > 0 {
		q.revoke(SessionKey(s.Token)) // it may be cached
		return res.Error
	}
	s.ExpiresAt = s.ExpiresAt.UTC()
	return q.db.Clauses(clause.OnConflict{DoNothing: true}).Create(&s).Error
}

// SessionByToken finds an unexpired session.
func (q *Queries) SessionByToken(token string, now time.Time) (s models.Session, err error) {
	return s, found(q.db.Where(validSession, []string{token}, now).Take(&s).Error, "session")
}

// MaxSessions bounds the sessions that are listed of a user.
const MaxSessions = 100

// SessionsOf lists the last sessions of a user in a generation that have not expired,
// without their data: the one that began last first.
func (q *Queries) SessionsOf(user, generation int64) (list []models.Session, err error) {
	return list, q.db.Omit("data").Where("user_id = ? AND generation = ? AND expires_at > ? AND length(data) > 0", user, generation, q.Now()).
		Order("began_at IS NULL, began_at DESC, token").Limit(MaxSessions).Find(&list).Error
}

// TouchSession records the use of a session.
func (q *Queries) TouchSession(token string, at time.Time) error {
	return q.db.Model(&models.Session{}).Where("token = ?", token).Update("used_at", at.UTC()).Error
}

// validSession selects sessions that have not expired. One that was ended has no data: the clock
// of the server that ended it can be ahead.
const validSession = "token IN ? AND expires_at > ? AND length(data) > 0"

// DeleteSession ends a session; ending an absent one is no error.
func (q *Queries) DeleteSession(token string) error {
	res := q.db.Model(&models.Session{}).Where("token = ?", token).Update("data", []byte{})
	if res.RowsAffected > 0 {
		q.revoke(SessionKey(token))
	}
	return res.Error
}

// OwnerNames maps the owners of providers to their names.
func (q *Queries) OwnerNames() (map[int64]string, error) {
	return namesByID(q.db.Model(&models.User{}).Select("id, name").Where("id IN (SELECT owner_id FROM providers)"))
}
