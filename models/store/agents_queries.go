package store

import (
	"time"

	"weir/models"
)

// CreateAuthorization inserts a.
func (q *Queries) CreateAuthorization(a *models.Authorization) error {
	q.Touch("pool")
	return q.db.Create(a).Error
}

// AuthorizationByHash finds an authorization by its code's hash.
func (q *Queries) AuthorizationByHash(hash string) (a models.Authorization, err error) {
	return a, found(q.db.Where("hash = ?", hash).Take(&a).Error, "authorization")
}

// OpenAuthorizations lists those that can still be redeemed, newest first.
func (q *Queries) OpenAuthorizations(now time.Time) (list []models.Authorization, err error) {
	return list, q.db.Where("redeemed_at IS NULL AND expires_at > ?", now).Order("id DESC").Limit(200).Find(&list).Error
}

// RedeemAuthorization marks an authorization as used by a key; ok is false when
// it was used before or has expired.
func (q *Queries) RedeemAuthorization(hash, keyHash string, now time.Time) (ok bool, err error) {
	q.Touch("pool")
	res := q.db.Model(&models.Authorization{}).Where("hash = ? AND redeemed_at IS NULL AND expires_at > ?", hash, now).
		Updates(map[string]any{"redeemed_at": now, "key_hash": keyHash})
	return res.RowsAffected == 1, res.Error
}

// SetAuthorizationAgent records which agent was enrolled with an authorization.
func (q *Queries) SetAuthorizationAgent(id, agentID int64) error {
	return q.db.Model(&models.Authorization{}).Where("id = ?", id).Update("agent_id", agentID).Error
}

// RefuseAuthorization records a failed attempt to use an authorization; first
// reports whether it was the first one.
func (q *Queries) RefuseAuthorization(id int64, now time.Time) (first bool, err error) {
	res := q.db.Model(&models.Authorization{}).Where("id = ? AND refused_at IS NULL", id).Update("refused_at", now)
	return res.RowsAffected == 1, res.Error
}

// CreateAgent inserts a. A provider has one active agent: revoke the others
// first.
func (q *Queries) CreateAgent(a *models.Agent) error { return q.db.Create(a).Error }

// UpdateAgent writes a, unless it was revoked in the meantime: that is a
// Conflict. It needs the pool's lock.
func (q *Queries) UpdateAgent(a *models.Agent) error {
	res := q.db.Model(a).Where("id = ? AND revoked_at IS NULL", a.ID).Select("*").Omit("id", "created_at").Updates(a)
	if res.Error == nil && res.RowsAffected == 0 {
		return models.Conflict("The agent was revoked.")
	}
	return res.Error
}

// Agent finds an agent.
func (q *Queries) Agent(id int64) (a models.Agent, err error) {
	return a, found(q.db.Take(&a, id).Error, "agent")
}

// AgentBySerial finds the agent whose certificate, present, next or last, has
// the serial number.
func (q *Queries) AgentBySerial(serial string) (a models.Agent, err error) {
	if serial == "" {
		return a, models.NotFound("agent")
	}
	return a, found(q.db.Where("? IN (serial, next_serial, last_serial)", serial).Take(&a).Error, "agent")
}

// AgentOf finds the active agent of a provider.
func (q *Queries) AgentOf(providerID int64) (a models.Agent, err error) {
	return a, found(q.db.Where("provider_id = ? AND revoked_at IS NULL", providerID).Take(&a).Error, "agent")
}

// AgentsOf lists the agents that a provider ever had, newest first.
func (q *Queries) AgentsOf(providerID int64, limit int) (agents []models.Agent, err error) {
	return agents, q.db.Where("provider_id = ?", providerID).Order("id DESC").Limit(limit).Find(&agents).Error
}

// RevokeAgents revokes the agents of a provider and records the reason, and
// whether an administrator did it.
func (q *Queries) RevokeAgents(providerID int64, at time.Time, why models.Text, byAdmin bool) error {
	q.Touch("pool")
	return q.db.Model(&models.Agent{}).Where("provider_id = ? AND revoked_at IS NULL", providerID).
		Updates(map[string]any{"revoked_at": at, "revoked_why": why, "revoked_by_admin": byAdmin}).Error
}
