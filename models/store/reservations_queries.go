package store

import (
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// CreateReservations inserts reservations, and the grants of each.
func (q *Queries) CreateReservations(list []models.Reservation, grants [][]models.ReservationGrant) error {
	if len(list) == 0 {
		return nil
	}
	if err := q.db.CreateInBatches(&list, 100).Error; err != nil {
		return err
	}
	var all []models.ReservationGrant
	for i, r := range list {
		for j := range grants[i] {
			grants[i][j].ReservationID = r.ID
		}
		q.touchReservation(r, grants[i])
		all = append(all, grants[i]...)
	}
	return q.db.CreateInBatches(&all, 100).Error
}

func (q *Queries) touchReservation(r models.Reservation, grants []models.ReservationGrant) {
	q.Touch("reservation", r.ID)
	q.Touch("user", r.UserID)
	q.Touch("project", r.ProjectID)
	if len(grants) > 0 {
		q.changeShares(models.Map(grants, func(g models.ReservationGrant) int64 { return g.DeviceID })...)
	}
}

// LockReservation finds a reservation of a project in scope and locks it against changes
// until the transaction ends.
func (q *Queries) LockReservation(scope Scope, id int64) (r models.Reservation, err error) {
	return r, found(scope.projects(q.locking("NO KEY UPDATE"), "project_id").Take(&r, id).Error, "reservation")
}

// Reservation finds a reservation of a project in scope, with names.
func (q *Queries) Reservation(scope Scope, id int64) (r models.ReservationView, err error) {
	return r, found(q.reservationViews(scope).Where("reservations.id = ?", id).Take(&r).Error, "reservation")
}

func (q *Queries) reservationViews(scope Scope) *gorm.DB {
	return scope.projects(q.db.Table("reservations"), "reservations.project_id").
		Select("reservations.*, projects.name AS project_name, users.name AS user_name").
		Joins("JOIN projects ON projects.id = reservations.project_id").
		Joins("JOIN users ON users.id = reservations.user_id")
}

// Reservations lists reservations of projects in scope, newest first.
func (q *Queries) Reservations(scope Scope, f ReservationFilter, page Page) (list []models.ReservationView, err error) {
	return list, f.newest(q.reservationViews(scope), "reservations", page).Find(&list).Error
}

// GrantsOn lists what reservations of any project have of devices in a span.
func (q *Queries) GrantsOn(devices []int64, from, until time.Time) (list []models.ReservationGrant, err error) {
	return list, q.db.Where("device_id IN ? AND starts_at < ? AND ends_at > ?", devices, until, from).Find(&list).Error
}

// FirstReservations lists those of reservations of any project that begin first, with names.
func (q *Queries) FirstReservations(ids []int64, limit int) (list []models.ReservationView, err error) {
	return list, q.reservationViews(AllProjects).Where("reservations.id IN ?", ids).
		Order("reservations.starts_at, reservations.id").Limit(limit).Find(&list).Error
}

const grantDevices = "providers.name AS provider_name, devices.number, devices.model, devices.simulated"

// NameGrants adds their devices to grants.
func (q *Queries) NameGrants(grants []models.GrantView) error {
	ids := models.Map(grants, func(g models.GrantView) int64 { return g.DeviceID })
	var devices []models.GrantView
	err := q.db.Table("devices").Select("devices.id AS device_id, "+grantDevices).
		Joins("JOIN providers ON providers.id = devices.provider_id").Where("devices.id IN ?", ids).Find(&devices).Error
	for i, g := range grants {
		for _, d := range devices {
			if d.DeviceID == g.DeviceID {
				d.ReservationGrant = g.ReservationGrant
				grants[i] = d
			}
		}
	}
	return err
}

// WholeDevices lists devices by ID, each as a grant of all that it has.
func (q *Queries) WholeDevices(ids []int64) (list []models.GrantView, err error) {
	return list, q.db.Table("devices").Select("devices.id AS device_id, devices.cores, devices.memory_mib, "+grantDevices).
		Joins("JOIN providers ON providers.id = devices.provider_id").Where("devices.id IN ?", ids).Order("devices.id").Find(&list).Error
}

// GrantsOf lists the grants of reservations, by beginning.
func (q *Queries) GrantsOf(reservations ...int64) (list []models.GrantView, err error) {
	return list, q.db.Table("reservation_grants").
		Select("reservation_grants.*, "+grantDevices).
		Joins("JOIN devices ON devices.id = reservation_grants.device_id").Joins("JOIN providers ON providers.id = devices.provider_id").
		Where("reservation_id IN ?", reservations).Order("reservation_grants.starts_at, reservation_grants.id").Find(&list).Error
}

// GrantsByReservation are the grants of reservations, each by beginning.
func (q *Queries) GrantsByReservation(reservations ...int64) (map[int64][]models.GrantView, error) {
	list, err := q.GrantsOf(reservations...)
	grants := map[int64][]models.GrantView{}
	for _, g := range list {
		grants[g.ReservationID] = append(grants[g.ReservationID], g)
	}
	return grants, err
}

// ReservedAmong lists the grants on the devices of machines that have not ended, by device
// and beginning.
func (q *Queries) ReservedAmong(m Machines) (list []models.ReservedView, err error) {
	return list, m.ofDevices(q.reserved(), "reservation_grants.device_id").Order("reservation_grants.device_id, reservation_grants.starts_at, reservation_grants.id").Find(&list).Error
}

// ReservedBy lists the grants of a project that have not ended.
func (q *Queries) ReservedBy(project int64) (list []models.ReservedView, err error) {
	of, err := q.ReservedByProject(project)
	return of[project], err
}

// ReservedByProject lists the grants of projects that have not ended.
func (q *Queries) ReservedByProject(projects ...int64) (map[int64][]models.ReservedView, error) {
	var list []models.ReservedView
	err := q.reserved().Where("reservations.project_id IN ?", projects).Order("reservation_grants.id").Find(&list).Error
	of := map[int64][]models.ReservedView{}
	for _, g := range list {
		of[g.ProjectID] = append(of[g.ProjectID], g)
	}
	return of, err
}

func (q *Queries) reserved() *gorm.DB {
	return q.db.Table("reservation_grants").Select("reservation_grants.*, reservations.project_id, reservations.user_id").
		Joins("JOIN reservations ON reservations.id = reservation_grants.reservation_id").
		Where("reservation_grants.ends_at > ?", q.Now())
}

// TransitionReservation writes r, whose State may have changed, if the row is still in the
// state from and of r.Version; otherwise it is a Conflict. What r has not used yet of its
// grants ends with it.
func (q *Queries) TransitionReservation(r *models.Reservation, from models.ReservationState) error {
	if err := q.saveReservation(r, from); err != nil || !r.State.Ended() {
		return err
	}
	if err := q.db.Where("reservation_id = ? AND starts_at >= ?", r.ID, *r.EndedAt).Delete(&models.ReservationGrant{}).Error; err != nil {
		return err
	}
	return q.db.Model(&models.ReservationGrant{}).Where("reservation_id = ? AND ends_at > ?", r.ID, *r.EndedAt).Update("ends_at",
		*r.EndedAt).Error
}

// ChangeReservation writes r as TransitionReservation does, with other grants: those with
// an ID get their new end, those without one are added, and all others end.
func (q *Queries) ChangeReservation(r *models.Reservation, from models.ReservationState, grants []models.ReservationGrant) error {
	if err := q.saveReservation(r, from); err != nil {
		return err
	}
	var kept []int64
	var added []models.ReservationGrant
	for _, g := range grants {
		if g.ID == 0 {
			g.ReservationID = r.ID
			added = append(added, g)
			continue
		}
		kept = append(kept, g.ID)
		if err := q.db.Model(&models.ReservationGrant{ID: g.ID}).Where("reservation_id = ?", r.ID).Update("ends_at", g.EndsAt).Error; err != nil {
			return err
		}
	}
	others := q.db.Where("reservation_id = ?", r.ID)
	if kept != nil {
		others = others.Where("id NOT IN ?", kept)
	}
	if err := others.Delete(&models.ReservationGrant{}).Error; err != nil || added == nil {
		return err
	}
	q.touchReservation(*r, added)
	return q.db.CreateInBatches(&added, 100).Error
}

// saveReservation writes r if the row is still in the state from and of r.Version.
func (q *Queries) saveReservation(r *models.Reservation, from models.ReservationState) error {
	if err := replace(q.db.Where("id = ? AND state = ?", r.ID, from), r, &r.Version, "reservation", "id"); err != nil {
		return err
	}
	var grants []models.ReservationGrant
	if err := q.db.Where("reservation_id = ?", r.ID).Find(&grants).Error; err != nil {
		return err
	}
	q.touchReservation(*r, grants)
	return nil
}

// UseReservation records the first use of a reservation.
func (q *Queries) UseReservation(id int64, at time.Time) error {
	q.Touch("reservation", id)
	return q.db.Model(&models.Reservation{}).Where("id = ? AND used_at IS NULL", id).Update("used_at", at).Error
}

// UsedOfReservations is how much of the grants of reservations shares have used until now, in GPU cores × milliseconds.
func (q *Queries) UsedOfReservations(ids ...int64) (map[int64]int64, error) {
	var list []struct {
		ReservationID, Cores int64
		FromAt, EndsAt       time.Time
		UntilAt              *time.Time
	}
	err := q.db.Table("reservation_grants AS g").Select("g.reservation_id, g.ends_at, shares.cores, shares.from_at, shares.until_at").
		Joins("JOIN shares ON shares.device_id = g.device_id AND shares.from_at >= g.starts_at AND shares.grant_id = g.id").
		Where("g.reservation_id IN ?", ids).Find(&list).Error
	used := map[int64]int64{}
	for _, s := range list {
		end := q.Now()
		for _, at := range []*time.Time{&s.EndsAt, s.UntilAt} {
			if at != nil && at.Before(end) {
				end = *at
			}
		}
		used[s.ReservationID] += s.Cores * max(end.Sub(s.FromAt), 0).Milliseconds()
	}
	return used, err
}

// HoldersPastReservation lists the holders in use with an open share in a grant of a
// reservation that has ended, and the deployments in one, which have no share while they are idle.
func (q *Queries) HoldersPastReservation(now time.Time) (list []models.Claim, err error) {
	return list, q.db.Where("phase = ?", models.HolderInUse).
		Where(`(id IN (SELECT holder_id FROM shares WHERE until_at IS NULL AND grant_id IS NOT NULL
			AND NOT EXISTS (SELECT 1 FROM reservation_grants g WHERE g.id = grant_id AND g.ends_at > ?))
			OR id IN (SELECT d.holder_id FROM deployments d JOIN reservations r ON r.id = d.reservation_id
			WHERE r.ends_at <= ? OR r.ended_at IS NOT NULL))`, now, now).Order("id").Find(&list).Error
}

// OverdueBesideReservations lists the holders in use with an open share outside reservations that had to end by a moment
// if its device is needed, and of whose device something is reserved from now until then.
func (q *Queries) OverdueBesideReservations(at time.Time) (list []models.Claim, err error) {
	return list, q.db.Where("phase = ?", models.HolderInUse).
		Where(`id IN (SELECT s.holder_id FROM shares s JOIN reservation_grants g ON g.device_id = s.device_id
			WHERE s.until_at IS NULL AND s.grant_id IS NULL AND s.ends_by <= ? AND g.starts_at <= ? AND g.ends_at > ?)`,
			at, at, q.Now()).Order("id").Find(&list).Error
}

// GrantInUse is the grant of a reservation that a holder uses; of several the one that ends
// first. The error is NotFound if it uses none.
func (q *Queries) GrantInUse(holder int64) (g models.ReservationGrant, err error) {
	err = q.db.Where("id IN (SELECT grant_id FROM shares WHERE holder_id = ? AND until_at IS NULL)", holder).
		Order("ends_at, id").Take(&g).Error
	return g, found(err, "reservation")
}

// unusedGrants are the grants g of reservations that have not ended, and that no share was in
// although they began by a moment. Those of a reservation with the same start are used together.
func (q *Queries) unusedGrants(beganBy time.Time) *gorm.DB {
	return q.db.Table("reservation_grants AS g").Where("g.starts_at <= ? AND g.ends_at > ?", beganBy, q.Now()).
		Where(`NOT EXISTS (SELECT 1 FROM reservation_grants o JOIN shares
			ON shares.device_id = o.device_id AND shares.from_at >= o.starts_at AND shares.grant_id = o.id
			WHERE o.reservation_id = g.reservation_id AND o.starts_at = g.starts_at)`)
}

// ReleaseUnusedGrants ends the grants of a reservation that began by a moment and were not
// used, and with the last of its grants the reservation. It returns them as they were.
func (q *Queries) ReleaseUnusedGrants(r *models.Reservation, beganBy time.Time) (unused []models.ReservationGrant, err error) {
	if r.UsableAt != nil && r.UsableAt.After(beganBy) {
		return nil, nil
	}
	err = q.unusedGrants(beganBy).Select("g.*").Where("g.reservation_id = ?", r.ID).Order("g.starts_at, g.id").Find(&unused).Error
	if err != nil || len(unused) == 0 {
		return nil, err
	}
	ids := models.Map(unused, func(g models.ReservationGrant) int64 { return g.ID })
	var last []models.ReservationGrant
	err = q.db.Where("reservation_id = ? AND id NOT IN ?", r.ID, ids).Order("ends_at DESC").Limit(1).Find(&last).Error
	if err != nil {
		return nil, err
	}
	now := q.Now()
	if r.EndsAt = now; len(last) > 0 && last[0].EndsAt.After(now) {
		r.EndsAt = last[0].EndsAt
	}
	if err := q.saveReservation(r, r.State); err != nil {
		return nil, err
	}
	return unused, q.db.Model(&models.ReservationGrant{}).Where("id IN ?", ids).Update("ends_at", now).Error
}

// DueReservations lists the reservations that begin or end at a time, or expire, wholly or
// a part of them, because they have not been used although they began before another.
func (q *Queries) DueReservations(now, unusedSince time.Time) (list []models.Reservation, err error) {
	parts := q.unusedGrants(unusedSince).Select("1").Where("g.reservation_id = reservations.id")
	return list, q.db.Where("ended_at IS NULL").
		Where(`(state = ? AND starts_at <= ?) OR ends_at <= ? OR ((usable_at IS NULL OR usable_at <= ?)
			AND ((used_at IS NULL AND starts_at <= ?) OR (outcome = 'partial' AND EXISTS (?))))`,
			models.ReservationGranted, now, now, unusedSince, unusedSince, parts).
		Order("id").Limit(1000).Find(&list).Error
}

// UnusedReservations lists the reservations that have begun and are not used, wholly or a
// part of them, without those that are known to be usable only since a moment or later.
func (q *Queries) UnusedReservations(now, usableSince time.Time) (ids []int64, err error) {
	parts := q.unusedGrants(now).Select("1").Where("g.reservation_id = reservations.id")
	return ids, q.db.Model(&models.Reservation{}).Where("ended_at IS NULL AND starts_at <= ?", now).
		Where("usable_at IS NULL OR usable_at < ?", usableSince).
		Where("used_at IS NULL OR (outcome = 'partial' AND EXISTS (?))", parts).
		Order("id").Limit(1000).Pluck("id", &ids).Error
}

// EndingReservations lists the reservations in use that end by a moment, of whose users nobody was told of that end.
func (q *Queries) EndingReservations(by time.Time) (list []models.Reservation, err error) {
	return list, q.db.Where("state = ? AND ends_at <= ? AND (told_end IS NULL OR told_end <> ends_at)", models.ReservationActive, by).
		Where(`EXISTS (SELECT 1 FROM reservation_grants g JOIN shares s ON s.grant_id = g.id AND s.until_at IS NULL
			JOIN holders h ON h.id = s.holder_id AND h.phase = ? WHERE g.reservation_id = reservations.id)`, models.HolderInUse).
		Order("id").Limit(1000).Find(&list).Error
}

// SetToldEnd records that the user of a reservation was told of its end.
func (q *Queries) SetToldEnd(r models.Reservation) error {
	return q.db.Model(&models.Reservation{}).Where("id = ?", r.ID).Update("told_end", r.EndsAt).Error
}

// ReservationsToldUnusable lists the active and unused reservations of which their users were told that they cannot be
// used, and not yet that they can. Who uses one knows it.
func (q *Queries) ReservationsToldUnusable() (list []models.Reservation, err error) {
	return list, q.db.Where("state = ? AND told_unusable AND used_at IS NULL AND ends_at > ?", models.ReservationActive, q.Now()).
		Order("id").Limit(1000).Find(&list).Error
}

// SetToldUsable records that the user of a reservation was told that it can be used.
func (q *Queries) SetToldUsable(r models.Reservation) error {
	return q.db.Model(&models.Reservation{}).Where("id = ?", r.ID).Update("told_unusable", false).Error
}

// SetReservationsUsable records that reservations can be used only since a moment.
func (q *Queries) SetReservationsUsable(ids []int64, since time.Time) error {
	for _, id := range ids {
		q.Touch("reservation", id)
	}
	return q.db.Model(&models.Reservation{}).Where("id IN ? AND ended_at IS NULL", ids).Update("usable_at", since).Error
}

// RemovedReservations lists the reservations that have not ended, and of which all that has not is of machines that were
// removed from the pool.
func (q *Queries) RemovedReservations() (list []models.Reservation, err error) {
	const grants = `EXISTS (SELECT 1 FROM reservation_grants g JOIN devices d ON d.id = g.device_id JOIN providers p ON p.id = d.provider_id
		WHERE g.reservation_id = reservations.id AND g.ends_at > ? AND p.state `
	return list, q.db.Where("ended_at IS NULL").
		Where(grants+"= ?) AND NOT "+grants+"<> ?)", q.Now(), models.ProviderOffline, q.Now(), models.ProviderOffline).
		Order("id").Limit(1000).Find(&list).Error
}

// AbandonedReservations lists the reservations that have not ended, of those who may no
// longer use them.
func (q *Queries) AbandonedReservations() (list []models.Reservation, err error) {
	return list, q.abandonedReservations().Order("reservations.id").Limit(1000).Find(&list).Error
}

// AbandonedReservation locks one of the AbandonedReservations; it is NotFound for one that
// may continue.
func (q *Queries) AbandonedReservation(id int64) (r models.Reservation, err error) {
	if err := found(q.abandonedReservations().Where("reservations.id = ?", id).Take(&r).Error, "reservation"); err != nil {
		return r, err
	}
	return q.LockReservation(AllProjects, id)
}

func (q *Queries) abandonedReservations() *gorm.DB {
	return q.withoutRight("reservations", "reservations.created_at").Select("reservations.*").Where("reservations.ended_at IS NULL")
}
