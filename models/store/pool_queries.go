package store

import (
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"weir/models"
)

// LockPool serialises placement: no other transaction allocates shares before
// this one ends. Lock the project first where both are needed.
func (q *Queries) LockPool() error {
	version, err := q.poolVersion(q.locking("NO KEY UPDATE"))
	if err == nil {
		q.lockedVersion = &version
	}
	return err
}

// PoolVersion counts the transactions that have changed providers, devices or
// shares: what was read of them at a version is valid as long as that is the
// present one. This transaction's own changes count when it is committed. A snapshot, and who
// has locked the pool, reads it once.
func (q *Queries) PoolVersion() (version int64, err error) {
	if q.lockedVersion != nil {
		return *q.lockedVersion, nil
	}
	type pool struct{}
	return once(q.snapshot, pool{}, func() (int64, error) { return q.poolVersion(q.db) })
}

func (q *Queries) poolVersion(db *gorm.DB) (version int64, err error) {
	return version, db.Table("pool_lock").Where("id = 1").Select("decisions").Take(&version).Error
}

// PoolChanges counts this transaction's changes of the pool so far.
func (q *Queries) PoolChanges() int { return q.poolChanges }

// changePool counts a change of providers.
func (q *Queries) changePool(providers ...int64) {
	q.poolChanges++
	q.poolProviders = append(q.poolProviders, providers...)
	q.Touch("pool")
}

// changeShares counts a change of the shares or reservations of devices.
func (q *Queries) changeShares(devices ...int64) {
	q.poolDevices = append(q.poolDevices, devices...)
	q.changePool(-1) // no provider has this id
}

const (
	// poolChangesPruned is after how many versions old changes are deleted.
	poolChangesPruned = 1024
	// poolChangesKept is of how many versions the changes can be read.
	poolChangesKept = 4096
	// poolChangesEach is of how many providers and devices one transaction says that they have changed.
	poolChangesEach = 1000
)

// incrementPoolVersion gives the pool a new version at the end of a transaction
// that changed it, and notes which providers it changed.
func (q *Queries) incrementPoolVersion() error {
	if q.poolChanges == 0 {
		return nil
	}
	var version int64
	if err := q.db.Raw("UPDATE pool_lock SET decisions = decisions + 1 WHERE id = 1 RETURNING decisions").Scan(&version).Error; err != nil {
		return err
	}
	if version%poolChangesPruned == 0 {
		if err := q.db.Exec("DELETE FROM pool_changes WHERE version <= ?", version-poolChangesKept-poolChangesPruned).Error; err != nil {
			return err
		}
	}
	if len(q.poolProjects)+len(q.poolUsers) > 0 {
		var devices []int64
		if err := q.db.Model(&models.Share{}).Where("until_at IS NULL AND (project_id IN ? OR user_id IN ?)", q.poolProjects, q.poolUsers).
			Pluck("device_id", &devices).Error; err != nil {
			return err
		}
		q.poolDevices = append(q.poolDevices, devices...)
	}
	if len(q.poolProviders)+len(q.poolDevices) > poolChangesEach {
		return q.db.Exec("INSERT INTO pool_changes (version, provider_id) VALUES (?, 0)", version).Error
	}
	return q.db.Exec(`INSERT INTO pool_changes (version, provider_id, shares_only) SELECT CAST(? AS BIGINT), id, id NOT IN ? FROM providers
		WHERE id IN ? OR id IN (SELECT provider_id FROM devices WHERE id IN ?)`, version, q.poolProviders, q.poolProviders, q.poolDevices).Error
}

// Machines are some of the providers with their devices and shares.
type Machines struct {
	some       bool
	providers  []int64
	sharesOnly []int64 // of the providers: those of which nothing else has changed
}

// AllMachines are the machines of all providers.
var AllMachines = Machines{}

// MachineOf is the machine of a provider.
func MachineOf(provider int64) Machines { return Machines{some: true, providers: []int64{provider}} }

// MachinesChanged are those that have changed between two versions of the pool;
// all of them where that is not known any more.
func (q *Queries) MachinesChanged(since, version int64) (which Machines, err error) {
	if since > version || version-since > poolChangesKept {
		return AllMachines, nil
	}
	var changes []struct {
		ProviderID int64
		SharesOnly bool
	}
	err = q.db.Raw(`SELECT DISTINCT provider_id, shares_only FROM pool_changes WHERE version > ?
		ORDER BY provider_id, shares_only`, since).Scan(&changes).Error
	for i, c := range changes {
		if i > 0 && changes[i-1].ProviderID == c.ProviderID {
			continue // more than its shares
		}
		which.providers = append(which.providers, c.ProviderID)
		if c.SharesOnly {
			which.sharesOnly = append(which.sharesOnly, c.ProviderID)
		}
	}
	which.some = !slices.Contains(which.providers, 0)
	return which, err
}

// Changed parts machines into those that have changed, or may have, and the providers of those of which
// only shares and reservations have. Known are the providers that the reader has.
func (m Machines) Changed(known func(provider int64) bool) (changed Machines, sharesOnly []int64) {
	if !m.some {
		return m, nil
	}
	changed.some = true
	for _, id := range m.providers {
		if slices.Contains(m.sharesOnly, id) && known(id) {
			sharesOnly = append(sharesOnly, id)
		} else {
			changed.providers = append(changed.providers, id)
		}
	}
	return changed, sharesOnly
}

// none reports whether there are no machines, of which nothing needs to be read.
func (m Machines) none() bool { return m.some && len(m.providers) == 0 }

// of limits a query to the machines, by the column of the provider's id.
func (m Machines) of(db *gorm.DB, column string) *gorm.DB {
	if !m.some {
		return db
	}
	return db.Where(column+" IN ?", m.providers)
}

// ofDevices is of for a column with the id of a device. SQLite reads the rows of these devices alone,
// where it would read all rows in the order of a JOIN.
func (m Machines) ofDevices(db *gorm.DB, column string) *gorm.DB {
	if !m.some {
		return db
	}
	return db.Where(column+" IN (SELECT id FROM devices WHERE provider_id IN ?)", m.providers)
}

// ProvidersOf lists the providers of machines by id.
func (q *Queries) ProvidersOf(m Machines) (providers []models.Provider, err error) {
	if m.none() {
		return nil, nil
	}
	return providers, m.of(q.db, "id").Order("id").Limit(10_000).Find(&providers).Error
}

// DevicesAt lists the devices of machines that are present or still have an
// open share, by provider and number.
func (q *Queries) DevicesAt(m Machines) (devices []models.Device, err error) {
	if m.none() {
		return nil, nil
	}
	return devices, m.of(q.db, "provider_id").Where(`(present = ? OR EXISTS
		(SELECT 1 FROM shares s WHERE s.device_id = devices.id AND s.until_at IS NULL))`, true).
		Order("provider_id, number, id").Limit(100_000).Find(&devices).Error
}

// OpenSharesAmong lists the shares of machines that have not ended, by device
// and start.
func (q *Queries) OpenSharesAmong(m Machines) (shares []ShareView, err error) {
	db := q.sharesWithNames().Where("shares.until_at IS NULL")
	return shares, m.ofDevices(db, "shares.device_id").Order("shares.device_id, shares.id").Limit(100_000).Find(&shares).Error
}

// CreateProvider inserts p. A taken name is a conflict.
func (q *Queries) CreateProvider(p *models.Provider) error {
	err := q.db.Create(p).Error
	q.changePool(p.ID)
	return nameTaken(err, "provider", p.Name)
}

// UpdateProvider writes p if its version is still p.Version. A taken name is a conflict.
func (q *Queries) UpdateProvider(p *models.Provider) error {
	q.changePool(p.ID)
	return nameTaken(q.update(p, &p.Version, p.ID, "provider"), "provider", p.Name)
}

// TouchProvider records a heartbeat of a provider. It changes no settings, so the
// version stays.
func (q *Queries) TouchProvider(id int64, at time.Time) error {
	return q.db.Model(&models.Provider{}).Where("id = ?", id).UpdateColumn("seen_at", at).Error
}

// TransitionProvider writes the state of p with its reason and last heartbeat, if it
// is still in the state from. It changes no settings, so the version stays.
func (q *Queries) TransitionProvider(p *models.Provider, from string) error {
	q.changePool(p.ID)
	res := q.db.Model(&models.Provider{}).Where("id = ? AND state = ?", p.ID, from).
		UpdateColumns(map[string]any{"state": p.State, "reason": p.Reason, "seen_at": p.SeenAt})
	if res.Error == nil && res.RowsAffected == 0 {
		return models.Stale("provider")
	}
	return res.Error
}

// SeenAt returns when each provider was last heard from, which changes no version of the pool.
func (q *Queries) SeenAt() (map[int64]time.Time, error) {
	var list []models.Provider
	err := q.db.Select("id", "seen_at").Find(&list).Error
	seen := make(map[int64]time.Time, len(list))
	for _, p := range list {
		seen[p.ID] = p.SeenAt
	}
	return seen, err
}

// Provider finds a provider.
func (q *Queries) Provider(id int64) (p models.Provider, err error) {
	return p, found(q.db.Take(&p, id).Error, "provider")
}

// ProviderByMachine finds a provider by the digest of its machine's identity.
func (q *Queries) ProviderByMachine(machine string) (p models.Provider, err error) {
	return p, found(q.db.Where("machine = ?", machine).Take(&p).Error, "provider")
}

// ProviderByName finds a provider by its name.
func (q *Queries) ProviderByName(name string) (p models.Provider, err error) {
	return p, found(q.db.Where("name = ?", name).Take(&p).Error, "provider")
}

// Providers lists all providers by id.
func (q *Queries) Providers() (providers []models.Provider, err error) {
	return providers, q.db.Order("id").Limit(10_000).Find(&providers).Error
}

// CreateDevice inserts d.
func (q *Queries) CreateDevice(d *models.Device) error {
	q.changePool(d.ProviderID)
	return q.db.Create(d).Error
}

// DeviceByUUID finds a device by its driver's UUID.
func (q *Queries) DeviceByUUID(uuid string) (d models.Device, err error) {
	return d, found(q.db.Where("uuid = ?", uuid).Take(&d).Error, "device")
}

// UpdateDevice writes d if its version is still d.Version.
func (q *Queries) UpdateDevice(d *models.Device) error {
	q.changePool(d.ProviderID)
	return q.update(d, &d.Version, d.ID, "device")
}

// DevicesOf lists all devices that a provider ever had, by id.
func (q *Queries) DevicesOf(providerID int64) (devices []models.Device, err error) {
	return devices, q.db.Where("provider_id = ?", providerID).Order("id").Limit(10_000).Find(&devices).Error
}

// Device finds a device.
func (q *Queries) Device(id int64) (d models.Device, err error) {
	return d, found(q.db.Take(&d, id).Error, "device")
}

// NeverUsed reports whether a device never had a share or a reservation.
func (q *Queries) NeverUsed(device int64) (bool, error) {
	for _, use := range []any{&models.Share{}, &models.ReservationGrant{}} {
		if used, err := exists(q.db.Model(use).Where("device_id = ?", device)); err != nil || used {
			return false, err
		}
	}
	return true, nil
}

// DeleteDevice deletes a device that never had a share, with its measurements.
func (q *Queries) DeleteDevice(d models.Device) error {
	q.changePool(d.ProviderID)
	for _, of := range []any{&models.DeviceState{}, &models.Telemetry{}} {
		if err := q.db.Where("device_id = ?", d.ID).Delete(of).Error; err != nil {
			return err
		}
	}
	return q.db.Delete(&models.Device{}, d.ID).Error
}

// CreateShare inserts s.
func (q *Queries) CreateShare(s *models.Share) error {
	q.changeShares(s.DeviceID)
	return q.db.Create(s).Error
}

// ProvidersWithEnds are the providers with open shares that have an announced
// end.
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

// EndShares ends the open shares of a holder. It also deletes the processes
// last measured on their GPUs, which the next users must not see.
func (q *Queries) EndShares(holder int64, at time.Time) error {
	const devices = "SELECT device_id FROM shares WHERE holder_id = ? AND until_at IS NULL"
	if err := q.db.Exec(`UPDATE device_states SET processes = '[]' WHERE device_id IN (`+devices+`)
		OR device_id IN (SELECT parent_id FROM devices WHERE id IN (`+devices+`))`, holder, holder).Error; err != nil {
		return err
	}
	var ended []int64
	// Not before its start, whatever clock that was of.
	err := q.db.Raw(`UPDATE shares SET until_at = CASE WHEN from_at > ? THEN from_at ELSE ? END
		WHERE holder_id = ? AND until_at IS NULL RETURNING device_id`, at, at, holder).Scan(&ended).Error
	if len(ended) > 0 {
		q.changeShares(ended...)
	}
	return err
}

// SharesOf lists the open shares of a holder.
func (q *Queries) SharesOf(holder int64) (shares []models.Share, err error) {
	return shares, q.db.Where("holder_id = ? AND until_at IS NULL", holder).Order("id").Find(&shares).Error
}

// ShareHistory lists a device's shares, newest first.
func (q *Queries) ShareHistory(deviceID int64, limit int) (shares []ShareView, err error) {
	return shares, q.sharesWithNames().Where("shares.device_id = ?", deviceID).
		Order("shares.from_at DESC, shares.id DESC").Limit(limit).Find(&shares).Error // in the order of an index
}

func (q *Queries) sharesWithNames() *gorm.DB {
	return q.db.Table("shares").
		Select("shares.*, projects.name AS project_name, users.name AS user_name, holders.kind, " + holderID + " AS object_id, holders.name AS name").
		Joins("JOIN projects ON projects.id = shares.project_id").
		Joins("JOIN users ON users.id = shares.user_id").
		Joins("JOIN holders ON holders.id = shares.holder_id " + joinKinds)
}

// ShareView is a share with the names of its project and user, and its holder: the kind,
// the id among those of its kind and the name.
type ShareView struct {
	models.Share
	ProjectName string
	UserName    string
	Kind        models.HolderKind
	ObjectID    int64
	Name        string
}

// OpenSharesOf counts the open shares of devices.
func (q *Queries) OpenSharesOf(devices []int64) (n int64, err error) {
	return n, q.db.Model(&models.Share{}).Where("device_id IN ? AND until_at IS NULL", devices).Count(&n).Error
}

// BusyCoresAt sums, by physical device, the cores that holders use now of simulated GPUs at a
// provider.
func (q *Queries) BusyCoresAt(providerID int64) (map[int64]int64, error) {
	var rows []struct{ Device, Cores int64 }
	err := q.db.Raw(`SELECT COALESCE(d.parent_id, d.id) AS device, SUM(u.percent) AS cores
		FROM shares s JOIN devices d ON d.id = s.device_id JOIN holder_utilisation u ON u.holder_id = s.holder_id AND u.at > ?
		WHERE s.until_at IS NULL AND d.provider_id = ?
		GROUP BY 1`, q.Now().Add(-utilisationAge), providerID).Scan(&rows).Error
	cores := map[int64]int64{}
	for _, r := range rows {
		cores[r.Device] = r.Cores
	}
	return cores, err
}

// OpenSharesAt counts the open shares at a provider.
func (q *Queries) OpenSharesAt(providerID int64) (n int64, err error) {
	return n, q.db.Model(&models.Share{}).Where("until_at IS NULL AND device_id IN (SELECT id FROM devices WHERE provider_id = ?)",
		providerID).
		Count(&n).Error
}

// SharesWithOtherEnd lists the open shares at a provider that have no end, or
// one in the future, other than at.
func (q *Queries) SharesWithOtherEnd(providerID int64, at *time.Time) (shares []models.Share, err error) {
	db := q.db.Where("until_at IS NULL AND device_id IN (SELECT id FROM devices WHERE provider_id = ?)", providerID)
	if at == nil { // an end in the past stays as announced
		db = db.Where("ends_at > ?", q.Now())
	} else {
		db = db.Where("(ends_at IS NULL OR (ends_at <> ? AND ends_at > ?))", *at, q.Now())
	}
	return shares, db.Order("id").Find(&shares).Error
}

// AnnounceShareEnd announces the end of a share and its reason; nil withdraws it.
func (q *Queries) AnnounceShareEnd(id int64, at *time.Time, why models.Text) error {
	if at == nil {
		why = models.Text{}
	}
	share := models.Share{}
	err := q.db.Model(&share).Clauses(clause.Returning{Columns: []clause.Column{{Name: "device_id"}}}).Where("id = ?", id).
		Updates(map[string]any{"ends_at": at, "end_reason": why}).Error
	q.changeShares(share.DeviceID)
	return err
}

// OverdueHolders lists the holders in use with an open share whose announced end has come.
func (q *Queries) OverdueHolders(now time.Time) (list []models.Claim, err error) {
	return list, q.db.Where("phase = ?", models.HolderInUse).
		Where("id IN (SELECT holder_id FROM shares WHERE until_at IS NULL AND ends_at IS NOT NULL AND ends_at <= ?)", now).
		Order("id").Find(&list).Error
}
