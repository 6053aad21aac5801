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

// SaveProvider inserts p, or finds the provider of that name and updates its
// state and when it was seen; p gets the row's id.
func (q *Queries) SaveProvider(p *Provider) error {
	var old Provider
	err := q.db.Where("name = ?", p.Name).Take(&old).Error
	if KindOf(found(err, "provider")) == KindNotFound {
		q.Touch("pool")
		return q.db.Create(p).Error
	}
	if err != nil {
		return err
	}
	p.ID, p.CreatedAt, p.Version = old.ID, old.CreatedAt, old.Version
	q.Touch("pool")
	return q.update(p, &p.Version, p.ID, "provider")
}

// Providers lists all providers by id.
func (q *Queries) Providers() (providers []Provider, err error) {
	return providers, q.db.Order("id").Limit(10_000).Find(&providers).Error
}

// SaveDevice inserts d, or finds the device of that UUID and updates what the
// driver says of it; what an administrator has set stays.
func (q *Queries) SaveDevice(d *Device) error {
	var old Device
	err := q.db.Where("uuid = ?", d.UUID).Take(&old).Error
	if KindOf(found(err, "device")) == KindNotFound {
		q.Touch("pool")
		return q.db.Create(d).Error
	}
	if err != nil {
		return err
	}
	d.ID, d.CreatedAt, d.Version = old.ID, old.CreatedAt, old.Version
	d.Exclusive, d.Mixed = old.Exclusive, old.Mixed
	if *d == old {
		return nil
	}
	q.Touch("pool")
	return q.update(d, &d.Version, d.ID, "device")
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
