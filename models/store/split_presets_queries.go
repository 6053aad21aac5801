package store

import "weir/models"

// SplitPresets lists the split presets of a project, by service type.
func (q *Queries) SplitPresets(projectID int64) (list []models.SplitPreset, err error) {
	return list, q.db.Where("project_id = ?", projectID).Order("service_type").Limit(models.MaxSplitPresets).Find(&list).Error
}

// SplitPresetsFor lists those that are offered for models of an architecture.
func (q *Queries) SplitPresetsFor(projectID int64, architecture string) (list []models.SplitPreset, err error) {
	return list, q.db.Where("project_id = ? AND architecture IN ?", projectID, []string{"", architecture}).Order("service_type").
		Limit(models.MaxSplitPresets).Find(&list).Error
}

// SplitPreset finds a split preset of a project in scope.
func (q *Queries) SplitPreset(scope Scope, projectID, id int64) (p models.SplitPreset, err error) {
	return p, found(scope.projects(q.db, "project_id").Where("project_id = ?", projectID).Take(&p, id).Error, "split preset")
}

// CreateSplitPreset inserts a split preset.
func (q *Queries) CreateSplitPreset(p *models.SplitPreset) error { return q.db.Create(p).Error }

// DeleteSplitPreset removes a split preset.
func (q *Queries) DeleteSplitPreset(id int64) error {
	return q.db.Delete(&models.SplitPreset{}, id).Error
}
