package store

import "weir/models"

// CreateEnvironment inserts e; a taken name is a Conflict.
func (q *Queries) CreateEnvironment(e *models.Environment) error {
	q.Touch("environments")
	return nameTaken(q.db.Create(e).Error, "environment", e.Name)
}

// UpdateEnvironment writes e if its version is still e.Version.
func (q *Queries) UpdateEnvironment(e *models.Environment) error {
	q.Touch("environments")
	return nameTaken(q.update(e, &e.Version, e.ID, "environment"), "environment", e.Name)
}

// DeleteEnvironment removes an environment that no workspace or run ever used.
func (q *Queries) DeleteEnvironment(id int64) error {
	q.Touch("environments")
	return q.deleted(q.db.Where("id = ?", id).Delete(&models.Environment{}), "environment")
}

// EnvironmentUsed reports whether a workspace, a run or a deployment, active or ended, refers to it.
func (q *Queries) EnvironmentUsed(id int64) (bool, error) {
	for _, use := range []any{&models.Workspace{}, &models.Run{}, &models.Deployment{}} {
		if used, err := exists(q.db.Model(use).Where("environment_id = ?", id)); err != nil || used {
			return used, err
		}
	}
	return false, nil
}

// Environment finds a catalog entry.
func (q *Queries) Environment(id int64) (e models.Environment, err error) {
	return e, found(q.db.Take(&e, id).Error, "environment")
}

// Environments lists the catalog by id.
func (q *Queries) Environments() (all []models.Environment, err error) {
	return all, q.db.Order("id").Limit(1000).Find(&all).Error
}
