package store

import (
	"cmp"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"

	"weir/models"
)

// AddDeploymentCounts adds counts to those that are stored. Servers that do it at the same time lock the rows in
// the same order.
func (q *Queries) AddDeploymentCounts(list []models.DeploymentCount) error {
	if len(list) == 0 {
		return nil
	}
	slices.SortFunc(list, func(a, b models.DeploymentCount) int {
		return cmp.Or(cmp.Compare(a.DeploymentID, b.DeploymentID), cmp.Compare(a.Step, b.Step), a.At.Compare(b.At),
			cmp.Compare(a.Measure, b.Measure), cmp.Compare(a.Bucket, b.Bucket))
	})
	return q.db.Clauses(clause.OnConflict{
		Columns: []clause.Column{{Name: "deployment_id"}, {Name: "step"}, {Name: "at"}, {Name: "measure"}, {Name: "bucket"}},
		DoUpdates: clause.Assignments(map[string]any{
			"count":  gorm.Expr("deployment_counts.count + excluded.count"),
			"millis": gorm.Expr("deployment_counts.millis + excluded.millis"),
		}),
	}).CreateInBatches(&list, 100).Error
}

// DeploymentCounts lists what was counted of a deployment, by the first one of its model, in steps of so many
// seconds from a time on, oldest first.
func (q *Queries) DeploymentCounts(first, step int64, from time.Time) (list []models.DeploymentCount, err error) {
	return list, q.db.Where("deployment_id = ? AND step = ? AND at >= ?", first, step, from.UTC()).Order("at").Find(&list).Error
}

// LiveDeploymentCounts lists what was counted of all deployments that have not ended since their model was first
// deployed.
func (q *Queries) LiveDeploymentCounts() (list []models.DeploymentCount, err error) {
	live := q.db.Model(&models.Deployment{}).Select("COALESCE(first_id, id)").Where("state IN ?", models.LiveDeployments)
	return list, q.db.Where("step = 0 AND deployment_id IN (?)", live).Order("deployment_id").Find(&list).Error
}

// PruneDeploymentCounts deletes the counts in steps of so many seconds from before a time.
func (q *Queries) PruneDeploymentCounts(step int64, before time.Time) error {
	return q.db.Where("step = ? AND at < ?", step, before.UTC()).Delete(&models.DeploymentCount{}).Error
}
