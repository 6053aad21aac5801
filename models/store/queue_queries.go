package store

import (
	"time"

	"weir/models"
)

// QueuedView is a claim in the queue with names, its project's rank and quota and its
// member's limit, which is nothing for a former member.
type QueuedView struct {
	models.Claim
	ObjectID        int64 // among those of its kind
	ProjectName     string
	UserName        string
	ProjectPriority int64
	ProjectQuota    models.Resources `gorm:"embedded;embeddedPrefix:project_quota_"`
	Limit           models.Resources `gorm:"embedded;embeddedPrefix:limit_"`
}

// Queued lists all claims of queued holders, oldest first.
func (q *Queries) Queued() (list []QueuedView, err error) {
	return list, q.db.Table("holders").
		Select(`holders.*, `+holderID+` AS object_id, projects.name AS project_name, users.name AS user_name,
			projects.priority AS project_priority, projects.quota_gpu_cores AS project_quota_gpu_cores,
			projects.quota_gpu_memory_mib AS project_quota_gpu_memory_mib, projects.quota_cpu_milli AS project_quota_cpu_milli,
			projects.quota_memory_mib AS project_quota_memory_mib, projects.quota_storage_mib AS project_quota_storage_mib,
			`+limitColumns).
		Joins(joinKinds).
		Joins("JOIN projects ON projects.id = holders.project_id").
		Joins("JOIN users ON users.id = holders.user_id").
		Joins("LEFT JOIN members ON members.id = holders.member_id AND members.removed_at IS NULL").
		Joins("LEFT JOIN roles ON roles.id = members.role_id").
		Where("holders.phase = ?", models.HolderQueued).Order("holders.id").Find(&list).Error
}

// Spans are the durations of past shares, by project.
type Spans struct {
	all       []time.Duration
	byProject map[int64][]time.Duration
}

// enoughSpans is how many a project must have for estimates from its own.
const enoughSpans = 10

// Of returns a project's spans, or all spans when the project has too few.
func (s Spans) Of(project int64) []time.Duration {
	if own := s.byProject[project]; len(own) >= enoughSpans {
		return own
	}
	return s.all
}

// PastSpans reads the newest spans that have ended.
func (q *Queries) PastSpans(limit int) (Spans, error) {
	var rows []models.Share
	err := q.db.Select("project_id, from_at, until_at").Where("until_at IS NOT NULL").Order("id DESC").Limit(limit).Find(&rows).Error
	s := Spans{byProject: map[int64][]time.Duration{}}
	for _, r := range rows {
		span := r.Until.Sub(r.From)
		s.all = append(s.all, span)
		s.byProject[r.ProjectID] = append(s.byProject[r.ProjectID], span)
	}
	return s, err
}

// PeriodEnds maps the holders of open shares to the end of the right to them:
// of the membership or of the project's period. Those without an end are
// absent.
func (q *Queries) PeriodEnds() (map[int64]*time.Time, error) {
	var rows []struct {
		ID     int64
		Until  *time.Time
		EndsAt *time.Time
	}
	err := q.db.Table("holders").Select("holders.id, members.until, projects.ends_at").
		Joins("JOIN members ON members.id = holders.member_id").
		Joins("JOIN projects ON projects.id = holders.project_id").
		Where("holders.id IN (SELECT holder_id FROM shares WHERE until_at IS NULL)").
		Where("(members.until IS NOT NULL OR projects.ends_at IS NOT NULL)").Find(&rows).Error
	ends := make(map[int64]*time.Time, len(rows))
	for _, r := range rows {
		ends[r.ID] = r.Until
		if r.Until == nil || r.EndsAt != nil && r.EndsAt.Before(*r.Until) {
			ends[r.ID] = r.EndsAt
		}
	}
	return ends, err
}
