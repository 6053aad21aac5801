package store

import (
	"slices"
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

// utilisationAge is for how long what was measured of a simulated GPU holds.
const utilisationAge = 2 * time.Minute

// SaveUtilisation stores how much holders use of their simulated GPUs, and returns those of them
// that have any.
func (q *Queries) SaveUtilisation(list []models.HolderUtilisation) (map[int64]bool, error) {
	holders := make([]int64, len(list))
	for i, u := range list {
		holders[i] = u.HolderID
	}
	var found []int64
	err := q.db.Model(&models.Share{}).Distinct("holder_id").
		Where("holder_id IN ? AND until_at IS NULL AND device_id IN (SELECT id FROM devices WHERE simulated)", holders).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return nil, err
	}
	simulated := make(map[int64]bool, len(found))
	for _, holder := range found {
		simulated[holder] = true
	}
	list = slices.DeleteFunc(slices.Clone(list), func(u models.HolderUtilisation) bool { return !simulated[u.HolderID] })
	return simulated, q.db.Clauses(clause.OnConflict{UpdateAll: true}).CreateInBatches(&list, 500).Error
}

// Utilisation is how much of each of their simulated GPUs holders use now, in percent, by holder,
// where that is known.
func (q *Queries) Utilisation() (map[int64]int64, error) {
	var list []models.HolderUtilisation
	err := q.db.Where("at > ?", q.Now().Add(-utilisationAge)).Find(&list).Error
	percent := make(map[int64]int64, len(list))
	for _, u := range list {
		percent[u.HolderID] = u.Percent
	}
	return percent, err
}

// WorkspaceTelemetry lists the measurements of a workspace from a time on, oldest first.
func (q *Queries) WorkspaceTelemetry(workspace int64, from time.Time) (list []models.WorkspaceTelemetry, err error) {
	return list, q.db.Where("workspace_id = ? AND at >= ?", workspace, from.UTC()).Order("at").Find(&list).Error
}
