package store

import (
	"gorm.io/gorm/clause"

	"weir/models"
)

// FilesOf is the kind of the revocation key of a project's rules about files.
const FilesOf = "files"

// FileRules returns all rules of a project.
func (q *Queries) FileRules(projectID int64) (list []models.FileRule, err error) {
	return list, q.db.Where("project_id = ?", projectID).Order("id").Limit(models.MaxFileRules).Find(&list).Error
}

// FileRulesPage lists rules of a project, by id; of some paths, or with nil of all.
func (q *Queries) FileRulesPage(scope Scope, projectID int64, paths []models.FilePath, page Page) (list []models.FileRule, err error) {
	db := scope.projects(q.db, "project_id").Where("project_id = ?", projectID)
	if paths != nil {
		db = db.Where("path IN ?", paths)
	}
	return list, page.oldest(db, "id").Find(&list).Error
}

// FileRule finds a rule of a project.
func (q *Queries) FileRule(scope Scope, projectID, id int64) (r models.FileRule, err error) {
	return r, found(scope.projects(q.db, "project_id").Where("project_id = ? AND id = ?", projectID, id).Take(&r).Error, "rule")
}

// FileRuleAt finds the rule about a path for a subject.
func (q *Queries) FileRuleAt(projectID int64, path models.FilePath, subject models.FileSubject, subjectID int64) (
	r models.FileRule, err error) {
	return r, found(q.db.Where("project_id = ? AND path = ? AND subject = ? AND subject_id = ?", projectID, path, subject,
		subjectID).Take(&r).Error, "rule")
}

// CountFileRules counts the rules of a project.
func (q *Queries) CountFileRules(projectID int64) (n int64, err error) {
	return n, q.db.Model(&models.FileRule{}).Where("project_id = ?", projectID).Count(&n).Error
}

// PutFileRule inserts a rule, or replaces that about the same path for the same
// subject.
func (q *Queries) PutFileRule(r *models.FileRule) error {
	q.changeFileRules(r.ProjectID)
	return q.db.Clauses(clause.OnConflict{Columns: []clause.Column{{Name: "project_id"}, {Name: "path"}, {Name: "subject"},
		{Name: "subject_id"}},
		DoUpdates: clause.AssignmentColumns([]string{"access", "download", "changed_at"})}, clause.Returning{}).Create(r).Error
}

// DeleteFileRule removes a rule.
func (q *Queries) DeleteFileRule(projectID, id int64) error {
	q.changeFileRules(projectID)
	return q.deleted(q.db.Where("project_id = ? AND id = ?", projectID, id).Delete(&models.FileRule{}), "rule")
}

func (q *Queries) deleteFileRulesOf(projectID int64, subject models.FileSubject, id int64) error {
	q.changeFileRules(projectID)
	return q.db.Where("project_id = ? AND subject = ? AND subject_id = ?", projectID, subject, id).Delete(&models.FileRule{}).Error
}

func (q *Queries) changeFileRules(projectID int64) {
	q.Touch("project", projectID)
	q.Revoke(FilesOf, projectID)
}
