package store

import (
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// CreateFileOperation records the intent of an operation.
func (q *Queries) CreateFileOperation(o *models.FileOperation) error { return q.db.Create(o).Error }

// UpdateFileOperation writes an operation that is still in progress.
func (q *Queries) UpdateFileOperation(o models.FileOperation) error {
	return q.deleted(q.db.Model(&o).Select("Reserved", "Inode", "ExpiresAt").Updates(&o), "operation")
}

// ClaimFileOperation takes an expired operation until a time; false if somebody has
// continued or ended it.
func (q *Queries) ClaimFileOperation(o models.FileOperation, until time.Time) (bool, error) {
	res := q.db.Model(&models.FileOperation{}).Where("id = ? AND expires_at = ?", o.ID, o.ExpiresAt).Update("expires_at", until)
	return res.RowsAffected == 1, res.Error
}

// DeleteFileOperation ends an operation.
func (q *Queries) DeleteFileOperation(id int64) error {
	return q.deleted(q.db.Delete(&models.FileOperation{}, id), "operation")
}

// FileOperation finds an operation in progress of a project.
func (q *Queries) FileOperation(projectID, id int64) (o models.FileOperation, err error) {
	return o, found(q.db.Where("project_id = ? AND id = ?", projectID, id).Take(&o).Error, "upload")
}

// ExpiredFileOperations lists operations that nobody continues.
func (q *Queries) ExpiredFileOperations(now time.Time) (list []models.FileOperation, err error) {
	return list, q.db.Where("expires_at <= ?", now).Order("id").Limit(PageSize).Find(&list).Error
}

// CreateTrashedFile records a deleted file.
func (q *Queries) CreateTrashedFile(f models.TrashedFile) error { return q.db.Create(&f).Error }

// TrashedFiles lists the trash of a project, the newest first.
func (q *Queries) TrashedFiles(projectID int64, page Page) (list []models.TrashedFile, err error) {
	return list, page.newest(q.db.Where("project_id = ?", projectID), "id").Find(&list).Error
}

// TrashedFile finds an item in the trash of a project.
func (q *Queries) TrashedFile(projectID, id int64) (f models.TrashedFile, err error) {
	return f, found(q.db.Where("project_id = ? AND id = ?", projectID, id).Take(&f).Error, "file")
}

// DeleteTrashedFile removes an item from the trash.
func (q *Queries) DeleteTrashedFile(id int64) error {
	return q.deleted(q.db.Delete(&models.TrashedFile{}, id), "file")
}

// TrashedFilesBefore lists what was deleted before a time.
func (q *Queries) TrashedFilesBefore(at time.Time) (list []models.TrashedFile, err error) {
	return list, q.db.Where("at < ?", at).Order("at").Limit(PageSize).Find(&list).Error
}

// KnownFileIDs lists those of some ids that at one moment have a record, of the trash or of a version, or an operation in
// progress.
func (q *Queries) KnownFileIDs(ids []int64) (known []int64, err error) {
	return known, q.db.Raw("SELECT id FROM file_operations WHERE id IN @ids UNION SELECT item_id FROM file_operations WHERE item_id IN @ids "+
		"UNION SELECT id FROM trashed_files WHERE id IN @ids UNION SELECT id FROM file_versions WHERE id IN @ids",
		map[string]any{"ids": ids}).Scan(&known).Error
}

// VersionedPaths lists those of some paths in a project that have overwritten versions.
func (q *Queries) VersionedPaths(projectID int64, paths []models.FilePath) (list []models.FilePath, err error) {
	db := q.db.Model(&models.FileVersion{}).Where("project_id = ? AND path IN ?", projectID, paths)
	return list, db.Distinct().Pluck("path", &list).Error
}

// CreateFileVersion records an overwritten version.
func (q *Queries) CreateFileVersion(v models.FileVersion) error { return q.db.Create(&v).Error }

// FileVersions lists the versions of a file, the newest first.
func (q *Queries) FileVersions(projectID int64, path models.FilePath, page Page) (list []models.FileVersion, err error) {
	return list, page.newest(q.db.Where("project_id = ? AND path = ?", projectID, path), "id").Find(&list).Error
}

// FileVersion finds a version of a file of a project.
func (q *Queries) FileVersion(projectID, id int64) (v models.FileVersion, err error) {
	return v, found(q.db.Where("project_id = ? AND id = ?", projectID, id).Take(&v).Error, "version")
}

// DeleteFileVersion removes a version.
func (q *Queries) DeleteFileVersion(id int64) error {
	return q.deleted(q.db.Delete(&models.FileVersion{}, id), "version")
}

// FileVersionsBefore lists versions that were overwritten before a time.
func (q *Queries) FileVersionsBefore(at time.Time) (list []models.FileVersion, err error) {
	return list, q.db.Where("at < ?", at).Order("at").Limit(PageSize).Find(&list).Error
}

// nameOf is what pages call an account.
const nameOf = "COALESCE(NULLIF(users.name, ''), users.email) AS name"

// UserNames returns the names of accounts by id; an id can be nil.
func (q *Queries) UserNames(ids []*int64) (map[int64]string, error) {
	var known []int64
	for _, id := range ids {
		if id != nil {
			known = append(known, *id)
		}
	}
	return names(q.db.Table("users").Select("users.id, "+nameOf), "users.id", known)
}

// MemberNames returns the names of present and former members of a project by id.
func (q *Queries) MemberNames(projectID int64, ids []int64) (map[int64]string, error) {
	return names(q.db.Table("members").Select("members.id, "+nameOf).Joins("JOIN users ON users.id = members.user_id").
		Where("members.project_id = ?", projectID), "members.id", ids)
}

// RoleNames returns the names of roles of a project by id.
func (q *Queries) RoleNames(projectID int64, ids []int64) (map[int64]string, error) {
	return names(q.db.Table("roles").Select("id, name").Where("project_id = ?", projectID), "id", ids)
}

func names(db *gorm.DB, column string, ids []int64) (map[int64]string, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return namesByID(db.Where(column+" IN ?", ids))
}
