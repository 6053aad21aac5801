package store

import (
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"weir/models"
)

// StorageUse returns the bytes that a project's files use.
func (q *Queries) StorageUse(projectID int64) (u models.StorageUse, err error) {
	u.ProjectID = projectID
	return u, models.IgnoreNotFound(found(q.db.Where("project_id = ?", projectID).Take(&u).Error, "project"))
}

// MemberStorageUse returns the bytes of a member's files, and those that operations in
// progress have reserved for more.
func (q *Queries) MemberStorageUse(memberID int64) (u models.MemberStorageUse, reserved int64, err error) {
	u.MemberID = memberID
	if err := models.IgnoreNotFound(found(q.db.Where("member_id = ?", memberID).Take(&u).Error, "member")); err != nil {
		return u, 0, err
	}
	return u, reserved, q.db.Model(&models.FileOperation{}).Select("COALESCE(SUM(reserved), 0)").Where("member_id = ?",
		memberID).Scan(&reserved).Error
}

// MembersStorage lists what the present members of a project use, by id.
func (q *Queries) MembersStorage(projectID int64, page Page) (list []models.MemberStorage, err error) {
	db := q.db.Table("members").Select("members.id AS member_id, users.name AS user_name, roles.limit_storage_mib AS limit_mib, COALESCE(member_storage_use.used, 0) AS used, member_storage_use.read_only_at").
		Joins("JOIN users ON users.id = members.user_id").Joins("JOIN roles ON roles.id = members.role_id").
		Joins("LEFT JOIN member_storage_use ON member_storage_use.member_id = members.id").
		Where("members.project_id = ? AND members.removed_at IS NULL", projectID)
	return list, page.oldest(db, "members.id").Scan(&list).Error
}

// ReserveStorage changes the bytes of a project that operations have reserved.
func (q *Queries) ReserveStorage(projectID, bytes int64) error {
	return q.updateStorageUse(projectID, map[string]any{
		"reserved": gorm.Expr("CASE WHEN reserved + ? < 0 THEN 0 ELSE reserved + ? END", bytes, bytes)})
}

// AddStorageUse changes the use of a project and of its members. No number gets
// negative: what notebooks write is counted later than what the service removes. What a
// measurement in progress has counted already changes too.
func (q *Queries) AddStorageUse(projectID int64, changes ...models.StorageChange) error {
	for _, c := range changes {
		err := q.updateStorageUse(projectID, addedUse(c.Bytes.Sum(), "scan_path >= ?", c.At))
		if err != nil {
			return err
		}
		err = q.updateMembersStorageUse(projectID, c.Bytes, func(bytes int64) map[string]any {
			return addedUse(bytes, "(SELECT scan_path FROM storage_use WHERE project_id = ?) >= ?", projectID, c.At)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addedUse adds bytes to the use, and to what was scanned if a condition holds.
func addedUse(bytes int64, scanned string, args ...any) map[string]any {
	return map[string]any{"used": gorm.Expr("CASE WHEN used + ? < 0 THEN 0 ELSE used + ? END", bytes, bytes),
		"scanned": gorm.Expr("CASE WHEN "+scanned+" THEN scanned + ? ELSE scanned END", append(args, bytes)...)}
}

func (q *Queries) updateStorageUse(projectID int64, values map[string]any) error {
	q.Touch("project", projectID)
	use := &models.StorageUse{ProjectID: projectID}
	if err := q.db.Clauses(clause.OnConflict{DoNothing: true}).Select("ProjectID").Create(use).Error; err != nil {
		return err
	}
	return q.db.Model(&models.StorageUse{}).Where("project_id = ?", projectID).Updates(values).Error
}

// updateMembersStorageUse updates the rows of members in the order of their ids. What is
// no member of the project is left out.
func (q *Queries) updateMembersStorageUse(projectID int64, bytes models.StorageShares, values func(bytes int64) map[string]any) error {
	for _, member := range slices.Sorted(maps.Keys(bytes)) {
		if member == 0 || bytes[member] == 0 {
			continue
		}
		const create = "INSERT INTO member_storage_use (member_id) SELECT id FROM members WHERE id = ? AND project_id = ? ON CONFLICT DO NOTHING"
		if err := q.db.Exec(create, member, projectID).Error; err != nil {
			return err
		}
		if err := q.db.Model(&models.MemberStorageUse{}).Where("member_id = ? AND "+memberOfProject, member,
			projectID).Updates(values(bytes[member])).Error; err != nil {
			return err
		}
	}
	return nil
}

const memberOfProject = "member_id IN (SELECT id FROM members WHERE project_id = ?)"

// BeginScan begins a measurement of a project.
func (q *Queries) BeginScan(projectID int64, at models.ScanPath) error {
	if err := q.updateStorageUse(projectID, map[string]any{"scan_path": at, "scanned": 0}); err != nil {
		return err
	}
	return q.db.Model(&models.MemberStorageUse{}).Where(memberOfProject, projectID).Update("scanned", 0).Error
}

// AdvanceScan records how far a measurement has come, and what it has found since the
// last time.
func (q *Queries) AdvanceScan(projectID int64, at models.ScanPath, found models.StorageShares) error {
	if err := q.updateStorageUse(projectID, map[string]any{"scan_path": at, "scanned": gorm.Expr("scanned + ?", found.Sum())}); err != nil {
		return err
	}
	return q.updateMembersStorageUse(projectID, found, func(bytes int64) map[string]any {
		return map[string]any{"scanned": gorm.Expr("scanned + ?", bytes)}
	})
}

// FinishScan makes what a measurement has found the use.
func (q *Queries) FinishScan(projectID int64) error {
	measured := gorm.Expr("CASE WHEN scanned < 0 THEN 0 ELSE scanned END")
	if err := q.updateStorageUse(projectID, map[string]any{"used": measured, "scan_path": nil, "measured_at": q.Now()}); err != nil {
		return err
	}
	return q.db.Model(&models.MemberStorageUse{}).Where(memberOfProject, projectID).Update("used", measured).Error
}

// ProjectsToMeasure lists projects whose files were not measured since a time.
func (q *Queries) ProjectsToMeasure(since time.Time) (ids []int64, err error) {
	return ids, q.db.Table("projects").Joins("LEFT JOIN storage_use ON storage_use.project_id = projects.id").
		Where("storage_use.measured_at IS NULL OR storage_use.measured_at < ?", since).Order("projects.id").Limit(PageSize).Pluck("projects.id",
		&ids).Error
}

// ProjectsWithWork lists the projects in which a workspace or a run is active, so that programs can
// write files.
func (q *Queries) ProjectsWithWork() (ids []int64, err error) {
	of := func(table string, states any) *gorm.DB {
		return q.db.Table(table).Select("project_id").Where("state IN ?", states)
	}
	return ids, q.db.Table("projects").Where("id IN (?) OR id IN (?)", of("workspaces", models.ActiveStates), of("runs", models.LiveRuns)).
		Order("id").Pluck("id", &ids).Error
}

// changedExcess is the condition that it is not recorded whether a use exceeds a limit.
func changedExcess(use, limit string) string {
	return "CASE WHEN " + limit + " <= ? AND " + use + ".used > " + limit + " * 1048576 THEN 1 ELSE 0 END <> CASE WHEN " + use +
		".read_only_at IS NULL THEN 0 ELSE 1 END"
}

// ChangedStorageExcesses lists, at most a page, the projects and members that have
// exceeded their storage, or no longer do, since this was recorded.
func (q *Queries) ChangedStorageExcesses() ([]models.StorageExcess, error) {
	return q.storageExcesses(changedExcess, models.MaxAmount)
}

// StorageExcessesUntil lists, at most a page, the projects and members that have exceeded their storage
// and whose mounts will be read-only after a time.
func (q *Queries) StorageExcessesUntil(after time.Time) ([]models.StorageExcess, error) {
	return q.storageExcesses(func(use, _ string) string { return use + ".read_only_at > ?" }, after)
}

// storageExcesses lists the projects, and the members, of whose use and limit a condition holds.
func (q *Queries) storageExcesses(holds func(use, limit string) string, arg any) (list []models.StorageExcess, err error) {
	err = q.db.Table("storage_use").Select("projects.id AS project_id, projects.name AS project_name, storage_use.used, storage_use.read_only_at, projects.quota_storage_mib AS limit_mib").
		Joins("JOIN projects ON projects.id = storage_use.project_id").
		Where(holds("storage_use", "projects.quota_storage_mib"), arg).Order("projects.id").Limit(PageSize).Scan(&list).Error
	if err != nil {
		return nil, err
	}
	var members []models.StorageExcess
	err = q.db.Table("member_storage_use").Select("projects.id AS project_id, projects.name AS project_name, members.id AS member_id, members.user_id, "+
		"member_storage_use.used, member_storage_use.read_only_at, roles.limit_storage_mib AS limit_mib").
		Joins("JOIN members ON members.id = member_storage_use.member_id").
		Joins("JOIN roles ON roles.id = members.role_id").Joins("JOIN projects ON projects.id = members.project_id").
		Where("members.removed_at IS NULL AND "+holds("member_storage_use", "roles.limit_storage_mib"), arg).
		Order("members.id").Limit(PageSize).Scan(&members).Error
	return append(list, members...), err
}

// SetStorageReadOnly records from when on an excess makes mounts read-only; nil: it has
// ended.
func (q *Queries) SetStorageReadOnly(e models.StorageExcess, at *time.Time) error {
	q.Touch("project", e.ProjectID)
	if e.MemberID == 0 {
		return q.updateStorageUse(e.ProjectID, map[string]any{"read_only_at": at})
	}
	return q.db.Model(&models.MemberStorageUse{}).Where("member_id = ?", e.MemberID).Update("read_only_at", at).Error
}
