package store

import (
	"time"

	"weir/models"
)

// CountDecisions counts all decisions by outcome. Decisions are never deleted,
// so the counts only grow.
func (q *Queries) CountDecisions() (map[string]int64, error) {
	return countBy[string](q.db.Model(&models.DecisionRecord{}), "outcome", "*")
}

// CreateDecisionRecord inserts d.
func (q *Queries) CreateDecisionRecord(d *models.DecisionRecord) error {
	q.Touch("pool")
	return q.db.Create(d).Error
}

// DecisionRecordView is a decision with its holder, if there is one, and the names of its
// project and user.
type DecisionRecordView struct {
	models.DecisionRecord
	Kind        models.HolderKind
	ObjectID    *int64 // among those of its kind
	ProjectName string
	UserName    string
}

// DecisionsIn lists the newest decisions about requests of projects in scope.
func (q *Queries) DecisionsIn(scope Scope, limit int) (decisions []DecisionRecordView, err error) {
	return decisions, scope.projects(q.db.Table("decisions"), "decisions.project_id").
		Select("decisions.*, holders.kind AS kind, " + holderID + " AS object_id, projects.name AS project_name, users.name AS user_name").
		Joins("JOIN projects ON projects.id = decisions.project_id").
		Joins("JOIN users ON users.id = decisions.user_id").
		Joins("LEFT JOIN holders ON holders.id = decisions.holder_id " + joinKinds).
		Order("decisions.id DESC").Limit(limit).Find(&decisions).Error
}

// LastDecision is the number of the newest decision, or 0.
func (q *Queries) LastDecision() (n int64, err error) {
	return n, q.db.Model(&models.DecisionRecord{}).Select("COALESCE(MAX(id), 0)").Scan(&n).Error
}

// RefusedDemand is a demand with how often it was refused.
type RefusedDemand struct {
	Demand models.Demand `gorm:"embedded"`
	N      int64
}

// RefusedDemands counts the demands that were refused after a time, by model and
// size.
func (q *Queries) RefusedDemands(after time.Time) (list []RefusedDemand, err error) {
	return list, q.db.Table("decisions").Select("gpus, cores, gpu_model, COUNT(*) AS n").
		Where("outcome = ? AND at > ? AND gpus > 0", models.OutcomeRefused, after).
		Group("gpus, cores, gpu_model").Order("n DESC").Limit(1000).Find(&list).Error
}
