package models

import (
	"time"

	"gorm.io/gorm"
)

// LockPool makes this transaction the only one that places, until it ends.
// Lock the project first where both are needed.
func (q *Queries) LockPool() error {
	return q.lockRows("SELECT id FROM pool_lock WHERE id = 1 FOR NO KEY UPDATE")
}

// PoolVersion counts the transactions that have changed providers, devices or
// shares: what was read of them at a version stays true as long as it is the
// present one. This transaction's own changes do not count before its end.
func (q *Queries) PoolVersion() (version int64, err error) {
	return version, q.db.Raw("SELECT decisions FROM pool_lock WHERE id = 1").Scan(&version).Error
}

// PoolChanges counts what this transaction has changed of the pool so far.
func (q *Queries) PoolChanges() int { return q.poolChanges }

// changePool notes such a change.
func (q *Queries) changePool() {
	q.poolChanges++
	q.Touch("pool")
}

// countPool gives the pool a new version at the end of a transaction that
// changed it.
func (q *Queries) countPool() error {
	if q.poolChanges == 0 {
		return nil
	}
	return q.db.Raw("UPDATE pool_lock SET decisions = decisions + 1 WHERE id = 1 RETURNING decisions").Scan(&q.poolVersion).Error
}

// NewPoolVersion is the version that this transaction has given the pool,
// known once it is committed; 0 when it changed nothing.
func (q *Queries) NewPoolVersion() int64 { return q.poolVersion }

// CreateProvider inserts p. A taken name is a conflict.
func (q *Queries) CreateProvider(p *Provider) error {
	q.changePool()
	return q.db.Create(p).Error
}

// UpdateProvider writes p if its version is still p.Version.
func (q *Queries) UpdateProvider(p *Provider) error {
	q.changePool()
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
	q.changePool()
	res := q.db.Model(&Provider{}).Where("id = ? AND state = ?", p.ID, from).
		UpdateColumns(map[string]any{"state": p.State, "reason": p.Reason, "seen_at": p.SeenAt})
	if res.Error == nil && res.RowsAffected == 0 {
		return stale("provider")
	}
	return res.Error
}

// SeenProviders is when each provider was heard of last.
func (q *Queries) SeenProviders() (map[int64]time.Time, error) {
	var rows []Provider
	err := q.db.Select("id, seen_at").Find(&rows).Error
	seen := make(map[int64]time.Time, len(rows))
	for _, p := range rows {
		seen[p.ID] = p.SeenAt
	}
	return seen, err
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
	q.changePool()
	return q.db.Create(d).Error
}

// DeviceByUUID finds a device by what its driver calls it.
func (q *Queries) DeviceByUUID(uuid string) (d Device, err error) {
	return d, found(q.db.Where("uuid = ?", uuid).Take(&d).Error, "device")
}

// UpdateDevice writes d if its version is still d.Version.
func (q *Queries) UpdateDevice(d *Device) error {
	q.changePool()
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
	q.changePool()
	return q.db.Create(s).Error
}

// ProvidersWithEnds are the providers of whose shares some have an end.
func (q *Queries) ProvidersWithEnds() (map[int64]bool, error) {
	var ids []int64
	err := q.db.Table("shares").Distinct("devices.provider_id").Joins("JOIN devices ON devices.id = shares.device_id").
		Where("shares.until_at IS NULL AND shares.ends_at IS NOT NULL").Pluck("devices.provider_id", &ids).Error
	all := make(map[int64]bool, len(ids))
	for _, id := range ids {
		all[id] = true
	}
	return all, err
}

// EndShares ends the open shares of a workspace at now. The processes that
// were last measured on their GPUs are forgotten: whoever holds shares there
// from now on is not to read them.
func (q *Queries) EndShares(workspaceID int64, now time.Time) error {
	const held = "SELECT device_id FROM shares WHERE workspace_id = ? AND until_at IS NULL"
	if err := q.db.Exec(`UPDATE device_states SET processes = '[]' WHERE device_id IN (`+held+`)
		OR device_id IN (SELECT parent_id FROM devices WHERE id IN (`+held+`))`, workspaceID, workspaceID).Error; err != nil {
		return err
	}
	res := q.db.Model(&Share{}).Where("workspace_id = ? AND until_at IS NULL", workspaceID).Update("until_at", now)
	if res.RowsAffected > 0 {
		q.changePool()
	}
	return res.Error
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

// ShareViewsOf lists the open shares of a workspace with the names of its
// holder.
func (q *Queries) ShareViewsOf(workspaceID int64) (shares []ShareView, err error) {
	return shares, q.sharesWithNames().Where("shares.workspace_id = ? AND shares.until_at IS NULL", workspaceID).
		Order("shares.device_id, shares.id").Find(&shares).Error
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

// EnforcementLapsed is how a share under MPS is enforced while its GPU has no
// daemon: advisory, until it is back. No share is stored so.
const EnforcementLapsed = "lapsed"

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
// end is still to come, or not announced yet, and is not at.
func (q *Queries) SharesEndingOtherwise(providerID int64, at *time.Time) (shares []Share, err error) {
	db := q.db.Where("until_at IS NULL AND device_id IN (SELECT id FROM devices WHERE provider_id = ?)", providerID)
	if at == nil { // one that has come already stays as it was told
		db = db.Where("ends_at > ?", q.Now())
	} else {
		db = db.Where("(ends_at IS NULL OR (ends_at <> ? AND ends_at > ?))", *at, q.Now())
	}
	return shares, db.Order("id").Find(&shares).Error
}

// EndShareAt notes when a share has to end and why; nil takes that back.
func (q *Queries) EndShareAt(id int64, at *time.Time, why Text) error {
	q.changePool()
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
