package models

import (
	"time"

	"gorm.io/gorm"
)

// LockPool makes this transaction the only one that places, until it ends,
// and counts its decision. Lock the project first where both are needed.
func (q *Queries) LockPool() error {
	return q.db.Exec("UPDATE pool_lock SET decisions = decisions + 1 WHERE id = 1").Error
}

// CreateProvider inserts p. A taken name is a conflict.
func (q *Queries) CreateProvider(p *Provider) error {
	q.Touch("pool")
	return q.db.Create(p).Error
}

// UpdateProvider writes p if its version is still p.Version.
func (q *Queries) UpdateProvider(p *Provider) error {
	q.Touch("pool")
	return q.update(p, &p.Version, p.ID, "provider")
}

// SeeProvider notes that a provider was heard of. It changes nothing that
// anybody decides on, so the version stays.
func (q *Queries) SeeProvider(id int64, at time.Time) error {
	return q.db.Model(&Provider{}).Where("id = ?", id).UpdateColumn("seen_at", at).Error
}

// MoveProvider writes the state of p with its reason and when it was seen, if
// it still is in the state from. What people set stays as it is, and so does
// the version by which they change it.
func (q *Queries) MoveProvider(p *Provider, from string) error {
	q.Touch("pool")
	res := q.db.Model(&Provider{}).Where("id = ? AND state = ?", p.ID, from).
		UpdateColumns(map[string]any{"state": p.State, "reason": p.Reason, "seen_at": p.SeenAt})
	if res.Error == nil && res.RowsAffected == 0 {
		return stale("provider")
	}
	return res.Error
}

// Provider finds a provider.
func (q *Queries) Provider(id int64) (p Provider, err error) {
	return p, found(q.db.Take(&p, id).Error, "provider")
}

// ProviderOf finds the provider that a machine is, by the digest of the
// machine's identity.
func (q *Queries) ProviderOf(machine string) (p Provider, err error) {
	return p, found(q.db.Where("machine = ?", machine).Take(&p).Error, "provider")
}

// ProviderNamed finds a provider by its name.
func (q *Queries) ProviderNamed(name string) (p Provider, err error) {
	return p, found(q.db.Where("name = ?", name).Take(&p).Error, "provider")
}

// Providers lists all providers by id.
func (q *Queries) Providers() (providers []Provider, err error) {
	return providers, q.db.Order("id").Limit(10_000).Find(&providers).Error
}

// CreateDevice inserts d.
func (q *Queries) CreateDevice(d *Device) error {
	q.Touch("pool")
	return q.db.Create(d).Error
}

// DeviceByUUID finds a device by what its driver calls it.
func (q *Queries) DeviceByUUID(uuid string) (d Device, err error) {
	return d, found(q.db.Where("uuid = ?", uuid).Take(&d).Error, "device")
}

// UpdateDevice writes d if its version is still d.Version.
func (q *Queries) UpdateDevice(d *Device) error {
	q.Touch("pool")
	return q.update(d, &d.Version, d.ID, "device")
}

// Devices lists the devices that are present or still hold a share, by
// provider and number.
func (q *Queries) Devices() (devices []Device, err error) {
	return devices, q.db.Where(`present = ? OR EXISTS
		(SELECT 1 FROM shares s WHERE s.device_id = devices.id AND s.until_at IS NULL)`, true).
		Order("provider_id, number, id").Limit(100_000).Find(&devices).Error
}

// DevicesOf lists all devices that a provider ever had, by id.
func (q *Queries) DevicesOf(providerID int64) (devices []Device, err error) {
	return devices, q.db.Where("provider_id = ?", providerID).Order("id").Limit(10_000).Find(&devices).Error
}

// Device finds a device.
func (q *Queries) Device(id int64) (d Device, err error) {
	return d, found(q.db.Take(&d, id).Error, "device")
}

// CreateShare inserts s.
func (q *Queries) CreateShare(s *Share) error {
	q.Touch("pool")
	return q.db.Create(s).Error
}

// EndShares ends the open shares of a workspace at now.
func (q *Queries) EndShares(workspaceID int64, now time.Time) error {
	q.Touch("pool")
	return q.db.Model(&Share{}).Where("workspace_id = ? AND until_at IS NULL", workspaceID).Update("until_at", now).Error
}

// OpenShares lists the shares that are held now, by device and start.
func (q *Queries) OpenShares() (shares []ShareView, err error) {
	return shares, q.sharesWithNames().Where("shares.until_at IS NULL").
		Order("shares.device_id, shares.id").Limit(100_000).Find(&shares).Error
}

// SharesOf lists the open shares of a workspace.
func (q *Queries) SharesOf(workspaceID int64) (shares []Share, err error) {
	return shares, q.db.Where("workspace_id = ? AND until_at IS NULL", workspaceID).Order("id").Find(&shares).Error
}

// ShareHistory lists a device's shares, newest first.
func (q *Queries) ShareHistory(deviceID int64, limit int) (shares []ShareView, err error) {
	return shares, q.sharesWithNames().Where("shares.device_id = ?", deviceID).
		Order("shares.id DESC").Limit(limit).Find(&shares).Error
}

func (q *Queries) sharesWithNames() *gorm.DB {
	return q.db.Table("shares").
		Select("shares.*, projects.name AS project_name, users.name AS user_name, workspaces.name AS workspace_name").
		Joins("JOIN projects ON projects.id = shares.project_id").
		Joins("JOIN users ON users.id = shares.user_id").
		Joins("JOIN workspaces ON workspaces.id = shares.workspace_id")
}

// ShareView is a share with the names of its holder.
type ShareView struct {
	Share
	ProjectName   string
	UserName      string
	WorkspaceName string
}

// CreateDecision inserts d.
func (q *Queries) CreateDecision(d *Decision) error {
	q.Touch("pool")
	return q.db.Create(d).Error
}

// DecisionView is a decision with the names of who asked.
type DecisionView struct {
	Decision
	ProjectName string
	UserName    string
}

// Decisions lists the newest decisions.
func (q *Queries) Decisions(limit int) (decisions []DecisionView, err error) {
	return decisions, q.db.Table("decisions").
		Select("decisions.*, projects.name AS project_name, users.name AS user_name").
		Joins("JOIN projects ON projects.id = decisions.project_id").
		Joins("JOIN users ON users.id = decisions.user_id").
		Order("decisions.id DESC").Limit(limit).Find(&decisions).Error
}

// HeldOf counts the open shares of devices.
func (q *Queries) HeldOf(devices []int64) (n int64, err error) {
	return n, q.db.Model(&Share{}).Where("device_id IN ? AND until_at IS NULL", devices).Count(&n).Error
}

// HeldAt counts the open shares at a provider.
func (q *Queries) HeldAt(providerID int64) (n int64, err error) {
	return n, q.db.Model(&Share{}).Where("until_at IS NULL AND device_id IN (SELECT id FROM devices WHERE provider_id = ?)", providerID).
		Count(&n).Error
}

// HoldersAt lists the workspaces that hold a share at a provider.
func (q *Queries) HoldersAt(providerID int64) (list []Workspace, err error) {
	return list, q.db.Where(`id IN (SELECT s.workspace_id FROM shares s JOIN devices d ON d.id = s.device_id
		WHERE d.provider_id = ? AND s.until_at IS NULL)`, providerID).Order("id").Find(&list).Error
}

// SharesEndingOtherwise lists the open shares at a provider whose announced
// end is not at.
func (q *Queries) SharesEndingOtherwise(providerID int64, at *time.Time) (shares []Share, err error) {
	db := q.db.Where("until_at IS NULL AND device_id IN (SELECT id FROM devices WHERE provider_id = ?)", providerID)
	if at == nil {
		db = db.Where("ends_at IS NOT NULL")
	} else { // one that is over already stays as it was told
		db = db.Where("(ends_at IS NULL OR (ends_at <> ? AND ends_at > ?))", *at, q.Now())
	}
	return shares, db.Order("id").Find(&shares).Error
}

// EndShareAt notes when a share has to end and why; nil takes that back.
func (q *Queries) EndShareAt(id int64, at *time.Time, why Text) error {
	q.Touch("pool")
	if at == nil {
		why = Text{}
	}
	return q.db.Model(&Share{}).Where("id = ?", id).Updates(map[string]any{"ends_at": at, "end_reason": why}).Error
}

// Overdue lists the workspaces that still hold a share whose announced end
// has come.
func (q *Queries) Overdue(now time.Time) (list []Workspace, err error) {
	return list, q.db.Where("state IN ?", []WorkspaceState{StateStarting, StateRunning}).
		Where("id IN (SELECT workspace_id FROM shares WHERE until_at IS NULL AND ends_at IS NOT NULL AND ends_at <= ?)", now).
		Order("id").Find(&list).Error
}

// LastDecision is the number of the newest decision, which counts them.
func (q *Queries) LastDecision() (n int64, err error) {
	return n, q.db.Model(&Decision{}).Select("COALESCE(MAX(id), 0)").Scan(&n).Error
}
