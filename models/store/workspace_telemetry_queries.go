package store

import (
	"time"

	"gorm.io/gorm/clause"

	"weir/models"
)

// AddWorkspaceTelemetry adds measurements, and removes all from before a time.
func (q *Queries) AddWorkspaceTelemetry(list []models.WorkspaceTelemetry, before time.Time) error {
	if len(list) > 0 {
		if err := q.db.Clauses(clause.OnConflict{DoNothing: true}).CreateInBatches(&list, 500).Error; err != nil {
			return err
		}
	}
	return q.db.Where("at < ?", before.UTC()).Delete(&models.WorkspaceTelemetry{}).Error
}

// WorkspaceTelemetry lists the measurements of a workspace from a time on, oldest first.
func (q *Queries) WorkspaceTelemetry(workspace int64, from time.Time) (list []models.WorkspaceTelemetry, err error) {
	return list, q.db.Where("workspace_id = ? AND at >= ?", workspace, from.UTC()).Order("at").Find(&list).Error
}
