package store

import (
	"fmt"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// requestsTopic changes with every request.
const requestsTopic = "requests"

// CreateRequest inserts r.
func (q *Queries) CreateRequest(r *models.QuotaRequest) error {
	q.touchRequest(*r)
	return q.db.Create(r).Error
}

func (q *Queries) touchRequest(r models.QuotaRequest) {
	q.Touch(requestsTopic)
	q.Touch("user", r.RequesterID)
}

// CloseRequest writes the outcome of a request if it is still pending at
// r.Version; settled reports whether it was. Of concurrent callers one succeeds.
func (q *Queries) CloseRequest(r *models.QuotaRequest) (settled bool, err error) {
	q.touchRequest(*r)
	expected := r.Version
	r.Version++
	res := q.db.Model(r).Where("id = ? AND state = ? AND version = ?", r.ID, models.RequestPending, expected).
		Select("state", "project_id", "decided", "decider_id", "decision_reason", "decided_at", "version").Updates(r)
	return res.RowsAffected == 1, res.Error
}

// SetRequestProject records the project that an approved request created.
func (q *Queries) SetRequestProject(r *models.QuotaRequest, project int64) error {
	r.ProjectID = &project
	return q.db.Model(r).Where("id = ?", r.ID).UpdateColumn("project_id", project).Error
}

// presentAmounts are the columns of the quota or limit that a request would change.
var presentAmounts = func() (columns string) {
	for _, a := range (models.Resources{}).Amounts() {
		columns += fmt.Sprintf(", COALESCE(CASE quota_requests.kind WHEN '%[1]s' THEN projects.quota_%[3]s WHEN '%[2]s' THEN roles.limit_%[3]s END, 0) AS present_%[3]s",
			models.RequestQuota, models.RequestLimit, a.Name)
	}
	return columns
}()

func (q *Queries) requests() *gorm.DB {
	return q.db.Table("quota_requests").
		Select(`quota_requests.*, COALESCE(projects.name, '') AS project_name, COALESCE(roles.name, '') AS role_name,
			users.name AS requester_name, users.email AS requester_email, users.email_unconfirmed AS requester_unconfirmed,
			COALESCE(deciders.name, '') AS decider_name, projects.ends_at AS present_ends_at, members.until AS present_until` + presentAmounts).
		Joins("JOIN users ON users.id = quota_requests.requester_id").
		Joins("LEFT JOIN projects ON projects.id = quota_requests.project_id").
		Joins("LEFT JOIN roles ON roles.id = quota_requests.role_id").
		Joins("LEFT JOIN members ON members.id = quota_requests.member_id").
		Joins("LEFT JOIN users deciders ON deciders.id = quota_requests.decider_id")
}

// Request finds a request.
func (q *Queries) Request(id int64) (r models.RequestView, err error) {
	return r, found(q.requests().Where("quota_requests.id = ?", id).Take(&r).Error, "request")
}

// RequestsOf lists a person's requests, newest first; page.After is the last id
// of the page before.
func (q *Queries) RequestsOf(user int64, page Page) (list []models.RequestView, err error) {
	return list, page.newest(q.requests().Where("quota_requests.requester_id = ?", user), "quota_requests.id").Find(&list).Error
}

// CountPendingOf counts a person's pending requests and locks their number until
// the transaction ends.
func (q *Queries) CountPendingOf(user int64) (n int64, err error) {
	const class = 0x7271 << 32 // "rq", unlike other advisory locks
	if err := q.lock("SELECT pg_advisory_xact_lock(?)", class+user); err != nil {
		return 0, err
	}
	return n, q.db.Model(&models.QuotaRequest{}).Where("requester_id = ? AND state = ?", user, models.RequestPending).Count(&n).Error
}

// DecidableRequests selects the requests that an actor may decide.
type DecidableRequests struct {
	All        bool
	Projects   []int64 // in which the actor decides requests
	ExceptUser int64   // requests of this user are left out
}

func (d DecidableRequests) apply(db *gorm.DB) *gorm.DB {
	if d.All {
		return db
	}
	return db.Where("quota_requests.project_id IN ? AND quota_requests.kind NOT IN ? AND quota_requests.requester_id <> ?", d.Projects,
		models.PlatformKinds, d.ExceptUser)
}

// PendingRequests lists pending requests, oldest first.
func (q *Queries) PendingRequests(d DecidableRequests, page Page) (list []models.RequestView, err error) {
	db := d.apply(q.requests()).Where("quota_requests.state = ?", models.RequestPending)
	return list, page.oldest(db, "quota_requests.id").Find(&list).Error
}

// ClosedRequests lists decided and withdrawn requests, newest first; page.After
// is the last id of the page before.
func (q *Queries) ClosedRequests(d DecidableRequests, page Page) (list []models.RequestView, err error) {
	db := d.apply(q.requests()).Where("quota_requests.state <> ?", models.RequestPending)
	return list, page.newest(db, "quota_requests.id").Find(&list).Error
}

// CountPending counts pending requests.
func (q *Queries) CountPending(d DecidableRequests) (n int64, err error) {
	return n, d.apply(q.db.Table("quota_requests")).Where("quota_requests.state = ?", models.RequestPending).Count(&n).Error
}

// ProjectToJoin finds a project that accepts requests to join, by its id or its
// exact name.
func (q *Queries) ProjectToJoin(id int64, name string) (p models.Project, err error) {
	if !storable(name) {
		return p, models.NotFound("project")
	}
	return p, found(q.db.Where("join_requests AND (id = ? OR name = ?)", id, name).Order("id").Take(&p).Error, "project")
}

// Overcommit reads how far quotas may exceed the capacity.
func (q *Queries) Overcommit() (o models.Overcommit, err error) { return o, q.db.Take(&o, 1).Error }

// SetOvercommit writes o if its version is still o.Version.
func (q *Queries) SetOvercommit(o *models.Overcommit) error {
	q.Touch(requestsTopic)
	return q.update(o, &o.Version, o.ID, "setting")
}

// AllocatedQuotas is Σ of the quotas of projects whose period of use is not over.
func (q *Queries) AllocatedQuotas(now time.Time) (r models.Resources, err error) {
	err = q.db.Table("projects").Select(sumColumns("quota_")).Where("ends_at IS NULL OR ends_at > ?", now).Scan(&r).Error
	return r, err
}

// AllocatedProjects lists the projects whose period of use is not over, by id.
func (q *Queries) AllocatedProjects(now time.Time, page Page) (list []models.Project, err error) {
	return list, page.oldest(q.db.Where("(ends_at IS NULL OR ends_at > ?)", now), "id").Find(&list).Error
}
