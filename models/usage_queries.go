package models

import (
	"slices"
	"time"

	"gorm.io/gorm"
)

// ProjectHistory is what a project's members were promised, and its quota,
// from FromAt until UntilAt; nil is now.
type ProjectHistory struct {
	ID        int64
	ProjectID int64
	FromAt    time.Time
	UntilAt   *time.Time
	Members   int64
	Promised  Resources `gorm:"embedded;embeddedPrefix:promised_"` // Σ over members of their role's peak
	Quota     Resources `gorm:"embedded;embeddedPrefix:quota_"`
}

// TableName is not a plural.
func (ProjectHistory) TableName() string { return "project_history" }

// same tells whether nothing but the time differs.
func (h ProjectHistory) same(o ProjectHistory) bool {
	return h.Members == o.Members && h.Promised == o.Promised && h.Quota == o.Quota
}

// changePromise notes that this transaction may change what a project's
// members are promised, or its quota.
func (q *Queries) changePromise(project int64) {
	if q.topics != nil && !slices.Contains(q.promises, project) {
		q.promises = append(q.promises, project)
	}
}

// recordPromises writes what this transaction changed into the history, once
// for each project however many changes there were.
func (q *Queries) recordPromises() error {
	slices.Sort(q.promises)
	for _, project := range q.promises {
		if err := q.recordPromise(project); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queries) recordPromise(project int64) error {
	p, err := q.Project(Everything, project)
	if err != nil {
		return err
	}
	sums, err := q.promisedTo([]int64{project})
	if err != nil {
		return err
	}
	now := ProjectHistory{ProjectID: project, FromAt: q.Now(), Members: sums[project].Members, Promised: sums[project].Promised, Quota: p.Quota}
	var was []ProjectHistory
	if err := q.db.Where("project_id = ? AND until_at IS NULL", project).Find(&was).Error; err != nil {
		return err
	}
	switch {
	case len(was) == 0:
		return q.db.Create(&now).Error
	case was[0].same(now):
		return nil
	case !now.FromAt.After(was[0].FromAt): // twice in one moment
		now.ID, now.FromAt = was[0].ID, was[0].FromAt
		return q.db.Save(&now).Error
	}
	if err := q.db.Model(&was[0]).Update("until_at", now.FromAt).Error; err != nil {
		return err
	}
	return q.db.Create(&now).Error
}

// PromisesOver lists what a project had promised in a span, oldest first.
func (q *Queries) PromisesOver(scope Scope, project int64, from, to time.Time) (list []ProjectHistory, err error) {
	db := scope.projects(q.db, "project_id").Where("project_id = ? AND from_at < ? AND (until_at IS NULL OR until_at > ?)", project, to, from)
	return list, db.Order("from_at").Find(&list).Error
}

// HeldIn names a table that says what was held, and its columns.
type HeldIn struct{ table, first, second, from, until string }

// Where it is written what was held.
var (
	HeldShares     = HeldIn{"shares", "cores", "memory_mib", "from_at", "until_at"}            // GPU cores, GPU memory MiB
	HeldWorkspaces = HeldIn{"workspaces", "cpu_milli", "memory_mib", "started_at", "ended_at"} // CPU milli, memory MiB
)

// Edges are the begins, or the ends, of what was held in one step of a span:
// Σ of both amounts, and Σ of each amount times its seconds since the span
// began.
type Edges struct {
	Step             int64
	Amount, Moment   float64 // of the first amount
	Amount2, Moment2 float64 // of the second
}

// HeldEdges are the begins and the ends of what a project held in a span of n
// steps of equal length. What began before the span begins with it.
func (q *Queries) HeldEdges(in HeldIn, project int64, from time.Time, step time.Duration, n int) (begins, ends []Edges, err error) {
	to := from.Add(time.Duration(n) * step)
	began, ended := q.sinceBegin(in.from), q.sinceBegin(in.until)
	if q.postgres {
		began = "GREATEST(" + began + ", 0)"
	} else {
		began = "MAX(" + began + ", 0)"
	}
	rows := "SELECT " + in.first + " AS a, " + in.second + " AS b, " + began + " AS t FROM " + in.table + " WHERE project_id = ? AND " + in.from + " < ? AND " + in.until
	begins, err = q.edges(step, rows+" IS NULL UNION ALL "+rows+" > ?", from, project, to, from, project, to, from)
	if err != nil {
		return nil, nil, err
	}
	ends, err = q.edges(step, "SELECT "+in.first+" AS a, "+in.second+" AS b, "+ended+" AS t FROM "+in.table+
		" WHERE project_id = ? AND "+in.until+" > ? AND "+in.until+" < ?", from, project, from, to)
	return begins, ends, err
}

func (q *Queries) edges(step time.Duration, rows string, args ...any) (list []Edges, err error) {
	number := "CAST(t / ? AS INTEGER)"
	if q.postgres {
		number = "CAST(FLOOR(t / ?) AS BIGINT)"
	}
	return list, q.db.Table("(?) AS held", q.db.Raw(rows, args...)).
		Select(number+" AS step, SUM(a) AS amount, SUM(a * t) AS moment, SUM(b) AS amount2, SUM(b * t) AS moment2", step.Seconds()).
		Group("step").Order("step").Scan(&list).Error
}

// sinceBegin is SQL for the seconds from a moment, a parameter, until the
// time in a column.
func (q *Queries) sinceBegin(column string) string {
	if q.postgres {
		return "CAST(EXTRACT(EPOCH FROM " + column + " - CAST(? AS TIMESTAMPTZ)) AS DOUBLE PRECISION)"
	}
	return "(julianday(" + column + ") - julianday(?)) * 86400"
}

// UsedBy is what a project held from since until now, and of it what a person
// did; user 0 is everybody.
func (q *Queries) UsedBy(project, user int64, since, now time.Time) (Usage, error) {
	used, err := q.used(project, "0", since, now, func(db *gorm.DB) *gorm.DB {
		if user != 0 {
			db = db.Where("held.user_id = ?", user)
		}
		return db
	})
	return used[0], err
}

// UsedByRoles is what the people who are in each of a project's roles held
// from since until now, by the role's id; who has left is under 0.
func (q *Queries) UsedByRoles(project int64, since, now time.Time) (map[int64]Usage, error) {
	return q.used(project, "COALESCE(members.role_id, 0)", since, now, func(db *gorm.DB) *gorm.DB {
		return db.Joins("LEFT JOIN members ON members.project_id = ? AND members.user_id = held.user_id AND members.removed_at IS NULL", project)
	})
}

// UsedByUsers is what each of some people held in a project from since until
// now, by the account's id.
func (q *Queries) UsedByUsers(project int64, users []int64, since, now time.Time) (map[int64]Usage, error) {
	return q.used(project, "held.user_id", since, now, func(db *gorm.DB) *gorm.DB { return db.Where("held.user_id IN ?", users) })
}

// used adds up what was held in a span, by an id.
func (q *Queries) used(project int64, by string, since, now time.Time, of func(*gorm.DB) *gorm.DB) (map[int64]Usage, error) {
	used := map[int64]Usage{}
	for _, in := range []HeldIn{HeldShares, HeldWorkspaces} {
		var rows []struct{ Whose, First, Second int64 }
		if err := of(q.held(in, by, project, since, now)).Scan(&rows).Error; err != nil {
			return nil, err
		}
		for _, r := range rows {
			u := used[r.Whose]
			u.add(in, r.First, r.Second, now.Sub(since))
			used[r.Whose] = u
		}
	}
	return used, nil
}

// held adds up two columns by an id, each times the seconds of its row that
// lie in a span. What is held now and what ended within the span are read
// apart, so that an index leaves out all that ended before.
func (q *Queries) held(in HeldIn, by string, project int64, since, now time.Time) *gorm.DB {
	seconds := "MAX(0, (MIN(COALESCE(julianday(ended), julianday(?)), julianday(?)) - MAX(julianday(began), julianday(?))) * 86400)"
	if q.postgres {
		seconds = "GREATEST(0, EXTRACT(EPOCH FROM LEAST(COALESCE(ended, ?), ?) - GREATEST(began, ?)))"
	}
	sum := func(column string) string {
		return "CAST(COALESCE(SUM(ROUND(CAST(" + column + " * " + seconds + " AS NUMERIC))), 0) AS BIGINT)"
	}
	rows := "SELECT user_id, " + in.first + " AS a, " + in.second + " AS b, " + in.from + " AS began, " + in.until + " AS ended FROM " + in.table +
		" WHERE project_id = ? AND " + in.until
	return q.db.Table("(?) AS held", q.db.Raw(rows+" IS NULL UNION ALL "+rows+" > ?", project, project, since)).
		Select(by+" AS whose, "+sum("a")+" AS first, "+sum("b")+" AS second", now, now, since, now, now, since).
		Where("began < ?", now).Group("whose")
}

// HeldSimulated tells whether a project has held shares of simulated GPUs
// since a moment.
func (q *Queries) HeldSimulated(project int64, since time.Time) (bool, error) {
	var ids []int64
	err := q.db.Table("shares").Joins("JOIN devices ON devices.id = shares.device_id AND devices.simulated").
		Where("shares.project_id = ? AND (shares.until_at IS NULL OR shares.until_at > ?)", project, since).Limit(1).Pluck("shares.id", &ids).Error
	return len(ids) > 0, err
}
