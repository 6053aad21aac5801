package store

import (
	"database/sql"
	"strings"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// claimColumns are the columns of a claim that workspaces and runs are read with.
var claimColumns = []string{"name", "gpus", "cores", "gpu_memory_mib", "gpu_model", "cpu_milli", "memory_mib", "storage_mib",
	"reason", "requested_at", "started_at", "ended_at"}

// withClaims selects the rows of a table with the claims of their holders.
func withClaims(db *gorm.DB, table string) *gorm.DB {
	return db.Table("(SELECT " + table + ".*, holders." + strings.Join(claimColumns, ", holders.") +
		" FROM " + table + " JOIN holders ON holders.id = " + table + ".holder_id) AS " + table)
}

// joinKinds joins the tables of the kinds to holders, and holderID is the id there.
const (
	joinKinds = "LEFT JOIN workspaces ON workspaces.holder_id = holders.id LEFT JOIN runs ON runs.holder_id = holders.id " +
		"LEFT JOIN deployments ON deployments.holder_id = holders.id"
	holderID = "COALESCE(workspaces.id, runs.id, deployments.id)"
)

// createWithHolder inserts a row of the table of a kind, with its holder.
func (q *Queries) createWithHolder(row any, holder *int64, c models.Claim) error {
	c.ID = 0
	if err := q.db.Create(&c).Error; err != nil {
		return err
	}
	*holder = c.ID
	return q.db.Omit(claimColumns...).Create(row).Error
}

// saveClaim writes how far a holder is.
func (q *Queries) saveClaim(c models.Claim) error {
	return q.db.Model(&c).Select("*").Omit("id", "kind", "project_id", "member_id", "user_id", "name", "requested_at").Updates(&c).Error
}

// Claim finds the claim of a holder.
func (q *Queries) Claim(holder int64) (c models.Claim, err error) {
	return c, found(q.db.Take(&c, holder).Error, "holder")
}

// SetWaitReason sets why a holder waits, if it still does.
func (q *Queries) SetWaitReason(holder int64, why models.Text) error {
	list, err := q.holderViews("holders.id = ? AND holders.phase = ?", holder, models.HolderQueued)
	if err != nil || len(list) == 0 {
		return err
	}
	q.touchHolder(list[0])
	return q.db.Model(&models.Claim{}).Where("id = ? AND phase = ?", holder, models.HolderQueued).UpdateColumn("reason", why).Error
}

func (q *Queries) holderViews(which string, args ...any) (list []models.HolderView, err error) {
	state := "COALESCE(workspaces.state, runs.state, deployments.state) AS state"
	return list, q.db.Table("holders").Select("holders.*, "+holderID+" AS object_id, "+state).
		Joins(joinKinds).
		Where(which, args...).Order("holders.id").Find(&list).Error
}

// touchHolder tells the pages of a holder, its user, its project and the pool.
func (q *Queries) touchHolder(h models.HolderView) {
	q.Touch(string(h.Kind), h.ObjectID)
	q.Touch("user", h.UserID)
	q.Touch("project", h.ProjectID)
	if h.Demand.GPUs > 0 {
		q.Touch("pool")
	}
}

// TellHolder adds an event to the history of a holder, and returns it.
func (q *Queries) TellHolder(id int64, event models.Text) (h models.HolderView, err error) {
	list, err := q.tellHolders(event, "holders.id = ?", id)
	if err == nil && len(list) == 0 {
		err = models.NotFound("holder")
	}
	if err != nil {
		return h, err
	}
	return list[0], nil
}

// TellHoldersAt adds an event to the history of the holders of open shares at a provider.
func (q *Queries) TellHoldersAt(provider int64, event models.Text) error {
	return q.tellHoldersOn("d.provider_id = @id", provider, event)
}

// TellHoldersOn adds an event to the history of the holders of open shares of a device,
// optionally including the MIG instances of a GPU.
func (q *Queries) TellHoldersOn(device int64, instances bool, event models.Text) error {
	if instances {
		return q.tellHoldersOn("(d.id = @id OR d.parent_id = @id)", device, event)
	}
	return q.tellHoldersOn("d.id = @id", device, event)
}

// tellHoldersOn adds an event to the history of the holders of open shares of some
// devices d.
func (q *Queries) tellHoldersOn(devices string, id int64, event models.Text) error {
	_, err := q.tellHolders(event, `holders.id IN (SELECT s.holder_id FROM shares s JOIN devices d ON d.id = s.device_id
		WHERE `+devices+` AND s.until_at IS NULL)`, sql.Named("id", id))
	return err
}

// tellHolders adds an event to the history of some holders.
func (q *Queries) tellHolders(event models.Text, which string, args ...any) ([]models.HolderView, error) {
	list, err := q.holderViews(which, args...)
	for _, h := range list {
		if err == nil {
			err = q.addEvent(h, event)
		}
	}
	return list, err
}

// addEvent appends a line to the history of a holder.
func (q *Queries) addEvent(h models.HolderView, message models.Text) error {
	q.touchHolder(h)
	switch h.Kind {
	case models.HolderWorkspace:
	case models.HolderRun:
		if h.ObjectID == 0 { // it was deleted
			return nil
		}
		return q.db.Create(&models.RunEvent{RunID: h.ObjectID, ProjectID: h.ProjectID, At: q.Now(), State: models.RunState(h.State),
			Message: message}).Error
	case models.HolderDeployment:
		return q.db.Create(&models.DeploymentEvent{DeploymentID: h.ObjectID, ProjectID: h.ProjectID, At: q.Now(),
			State: models.DeploymentState(h.State), Message: message}).Error
	default: // others keep no history
		return nil
	}
	e := models.WorkspaceEvent{WorkspaceID: h.ObjectID, ProjectID: h.ProjectID, At: q.Now(), State: models.WorkspaceState(h.State),
		Message: message}
	q.events = append(q.events, e)
	return q.db.Create(&e).Error
}

// Eviction is a holder whose user has no right to it any more, with the possible reasons.
type Eviction struct {
	models.Claim
	Disabled    bool       `gorm:"column:user_disabled"` // the account
	RemovedAt   *time.Time `gorm:"column:member_removed_at"`
	Until       *time.Time `gorm:"column:member_until"`
	StartsAt    time.Time  `gorm:"column:project_starts_at"`
	EndsAt      *time.Time `gorm:"column:project_ends_at"`
	RoleForbids bool       // the role permits no launches
}

// roleForbids is the condition that a role permits no launches. Its
// permissions are a JSON list of names.
const roleForbids = `(roles.permission = 'viewer' OR (roles.permission = 'custom' AND roles.permissions NOT LIKE '%"workspace:launch"%'))`

// RecordEnded records what a holder that goes on has used until now of CPU and memory, which are
// counted by holders, as another holder that has ended. It demands something else from now on.
func (q *Queries) RecordEnded(c models.Claim) error {
	c.ID, c.Phase, c.EndedAt = 0, models.HolderEnded, new(q.Now())
	return q.db.Create(&c).Error
}

// Evictions lists the holders that are queued or in use and whose membership, role, account
// or project gives no right to them any more, in the order in which to end them: queued
// ones first, then those that have not started, and of each the newest first.
func (q *Queries) Evictions() (list []Eviction, err error) {
	return list, q.evictions().Order("CASE WHEN holders.phase = 'queued' THEN 0 WHEN holders.started_at IS NULL THEN 1 ELSE 2 END, holders.id DESC").Find(&list).Error
}

// Eviction finds one of the Evictions; it is NotFound for a holder that may continue.
func (q *Queries) Eviction(holder int64) (e Eviction, err error) {
	return e, found(q.evictions().Where("holders.id = ?", holder).Take(&e).Error, "holder")
}

func (q *Queries) evictions() *gorm.DB {
	return q.withoutRight("holders", "holders.requested_at").
		Select(`holders.*, users.disabled AS user_disabled, members.removed_at AS member_removed_at, members.until AS member_until,
			projects.starts_at AS project_starts_at, projects.ends_at AS project_ends_at, COALESCE(`+roleForbids+`, FALSE) AS role_forbids`).
		Where("holders.phase IN ?", []models.HolderPhase{models.HolderQueued, models.HolderInUse})
}

// withoutRight selects the holders or reservations of disabled accounts, of former
// members, of roles that permit no launches and of projects outside their period of use.
// What was requested when its project had begun stays when the clock is set back.
func (q *Queries) withoutRight(table, requestedAt string) *gorm.DB {
	now := q.Now()
	return q.db.Table(table).
		Joins("JOIN members ON members.id = "+table+".member_id").
		Joins("JOIN projects ON projects.id = "+table+".project_id").
		Joins("JOIN users ON users.id = "+table+".user_id").
		Joins("LEFT JOIN roles ON roles.id = members.role_id").
		Where(`(users.disabled = ? OR members.removed_at IS NOT NULL OR members.until <= ? OR projects.ends_at <= ?
			OR (projects.starts_at > ? AND projects.starts_at > `+requestedAt+`) OR `+roleForbids+`)`, true, now, now, now)
}
