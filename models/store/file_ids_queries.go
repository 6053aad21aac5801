package store

import (
	"time"

	"gorm.io/gorm/clause"

	"weir/models"
)

// FileTakeover is a project whose files still have the one owner of before.
type FileTakeover struct {
	ProjectID int64 `gorm:"primaryKey"`
	BegunAt   *time.Time
	Cursor    models.FilePath // the last directory that is done
}

type fileIDs struct {
	ID      int64
	FirstID int64
}

func (fileIDs) TableName() string { return "file_ids" }

// FirstFileID returns the first of the IDs that members and projects have on the file
// system; 0: they have none.
func (q *Queries) FirstFileID() (int64, error) {
	var row fileIDs
	return row.FirstID, q.db.Limit(1).Find(&row).Error
}

// SetFirstFileID sets the first ID, 0 for none. The files of all projects are then to be
// taken over.
func (q *Queries) SetFirstFileID(first int64) error {
	for _, rows := range []any{&fileIDs{}, &FileTakeover{}} {
		if err := q.db.Where("1 = 1").Delete(rows).Error; err != nil {
			return err
		}
	}
	if first == 0 {
		return nil
	}
	if err := q.db.Create(&fileIDs{1, first}).Error; err != nil {
		return err
	}
	return q.db.Exec("INSERT INTO file_takeovers (project_id) SELECT id FROM projects").Error
}

// FileTakeovers lists the projects whose files are to be taken over, by id.
func (q *Queries) FileTakeovers() (list []FileTakeover, err error) {
	return list, q.db.Order("project_id").Find(&list).Error
}

// FilesAwaitTakeover reports whether workspaces of a project still start with the one
// owner of before.
func (q *Queries) FilesAwaitTakeover(projectID int64) (bool, error) {
	return exists(q.db.Model(&FileTakeover{}).Where("project_id = ? AND begun_at IS NULL", projectID))
}

// SaveFileTakeover updates the progress of a takeover.
func (q *Queries) SaveFileTakeover(t FileTakeover) error {
	return q.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "project_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"begun_at", "cursor"})}).Create(&t).Error
}

// DeleteFileTakeover records that the files of a project were taken over.
func (q *Queries) DeleteFileTakeover(projectID int64) error {
	return q.db.Where("project_id = ?", projectID).Delete(&FileTakeover{}).Error
}

// ProjectsInUse lists the projects with holders that use resources, by id.
func (q *Queries) ProjectsInUse() (ids []int64, err error) {
	return ids, q.db.Model(&models.Claim{}).Where("phase IN ?", models.InUsePhases).Distinct().Order("project_id").Pluck("project_id",
		&ids).Error
}
