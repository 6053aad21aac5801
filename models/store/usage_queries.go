package store

import (
	"math"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// ProjectHistory is what is allocated in a project, and its quota, from FromAt until UntilAt;
// nil is the present.
type ProjectHistory struct {
	ID        int64
	ProjectID int64
	FromAt    time.Time
	UntilAt   *time.Time
	Members   int64
	Allocated models.Resources `gorm:"embedded;embeddedPrefix:allocated_"` // Σ over members of their role's limit
	Quota     models.Resources `gorm:"embedded;embeddedPrefix:quota_"`
}

// TableName overrides gorm's plural.
func (ProjectHistory) TableName() string { return "project_history" }

// same reports whether only the times differ.
func (h ProjectHistory) same(o ProjectHistory) bool {
	return h.Members == o.Members && h.Allocated == o.Allocated && h.Quota == o.Quota
}

// recordHistory writes the history of the marked projects, once for each
// project however many changes there were.
func (q *Queries) recordHistory() error {
	slices.Sort(q.historyOf)
	for _, project := range q.historyOf {
		if err := q.recordProjectHistory(project); err != nil {
			return err
		}
	}
	return nil
}

func (q *Queries) recordProjectHistory(project int64) error {
	p, err := q.Project(AllProjects, project)
	if err != nil {
		return err
	}
	sums, err := q.allocatedTo([]int64{project})
	if err != nil {
		return err
	}
	now := ProjectHistory{ProjectID: project, FromAt: q.Now(), Members: sums[project].Members, Allocated: sums[project].Allocated,
		Quota: p.Quota}
	var open []ProjectHistory
	if err := q.db.Where("project_id = ? AND until_at IS NULL", project).Find(&open).Error; err != nil {
		return err
	}
	switch {
	case len(open) == 0:
		return q.db.Create(&now).Error
	case open[0].same(now):
		return nil
	case !now.FromAt.After(open[0].FromAt): // twice at the same time
		now.ID, now.FromAt = open[0].ID, open[0].FromAt
		return q.db.Save(&now).Error
	}
	if err := q.db.Model(&open[0]).Update("until_at", now.FromAt).Error; err != nil {
		return err
	}
	return q.db.Create(&now).Error
}

// ProjectHistory lists the history of a project in a time span, oldest first.
func (q *Queries) ProjectHistory(scope Scope, project int64, from, to time.Time) (list []ProjectHistory, err error) {
	db := scope.projects(q.db, "project_id").Where("project_id = ? AND from_at < ? AND (until_at IS NULL OR until_at > ?)", project, to, from)
	return list, db.Order("from_at").Find(&list).Error
}

// UsageTable describes a table that records usage: its name and columns.
type UsageTable struct{ table, first, second, from, until string }

// Tables that record usage.
var (
	ShareUsage  = UsageTable{"shares", "cores", "memory_mib", "from_at", "until_at"}         // GPU cores, GPU memory MiB
	HolderUsage = UsageTable{"holders", "cpu_milli", "memory_mib", "started_at", "ended_at"} // CPU milli, memory MiB
)

// addTo sets the usage that the table records from its sums in units times seconds.
func (t UsageTable) addTo(u *models.Usage, first, second int64, span time.Duration) {
	seconds := max(int64(span/time.Second), 1)
	if t == ShareUsage {
		u.GPUCoreHours = hours(first)
		u.Average.GPUCores, u.Average.GPUMemoryMiB = first/seconds, second/seconds
		return
	}
	u.CPUHours = hours(first / 1000)
	u.Average.CPUMilli, u.Average.MemoryMiB = first/seconds, second/seconds
}

// hours are those of seconds, to two decimals.
func hours(seconds int64) float64 { return math.Round(float64(seconds)/36) / 100 }

// Edges are the begins, or the ends, of usage in one step of a time span: Σ of
// both amounts, and Σ of each amount times its seconds since the span began.
type Edges struct {
	Step             int64
	Amount, Moment   float64 // of the first amount
	Amount2, Moment2 float64 // of the second
}

// UsageEdges are the begins and the ends of the usage of a project, or of all if it is 0, in
// a time span of n equal steps. Usage from before the span begins with it.
func (q *Queries) UsageEdges(in UsageTable, project int64, from time.Time, step time.Duration, n int) (begins, ends []Edges, err error) {
	to := from.Add(time.Duration(n) * step)
	began, ended := q.greatest(q.secondsUntil(in.from), "0"), q.secondsUntil(in.until)
	amounts, where, of := "SELECT "+in.first+" AS a, "+in.second+" AS b, ", " AS t FROM "+in.table+" WHERE ", []any(nil)
	if project != 0 {
		where, of = where+"project_id = ? AND ", []any{project}
	}
	rows := amounts + began + where + in.from + " < ? AND " + in.until
	each := slices.Concat([]any{from}, of, []any{to})
	begins, err = q.edges(step, rows+" IS NULL UNION ALL "+rows+" > ?", slices.Concat(each, each, []any{from})...)
	if err != nil {
		return nil, nil, err
	}
	ends, err = q.edges(step, amounts+ended+where+in.until+" > ? AND "+in.until+" < ?", slices.Concat([]any{from}, of, []any{from, to})...)
	return begins, ends, err
}

func (q *Queries) edges(step time.Duration, rows string, args ...any) (list []Edges, err error) {
	number := "CAST(t / ? AS INTEGER)"
	if q.postgres {
		number = "CAST(FLOOR(t / ?) AS BIGINT)"
	}
	return list, q.db.Table("(?) AS rows_in_use", q.db.Raw(rows, args...)).
		Select(number+" AS step, SUM(a) AS amount, SUM(a * t) AS moment, SUM(b) AS amount2, SUM(b * t) AS moment2", step.Seconds()).
		Group("step").Order("step").Scan(&list).Error
}

// UsedBy is a project's usage from since until now, and the part of one user.
func (q *Queries) UsedBy(project, user int64, since, now time.Time) (all, own UsageSums, err error) {
	mine := "CASE WHEN rows_in_use.user_id = " + strconv.FormatInt(user, 10) + " THEN 1 ELSE 0 END"
	sums, err := q.usageSums(project, mine, since, now, func(db *gorm.DB) *gorm.DB { return db })
	return sums[0].Plus(sums[1]), sums[1], err
}

// usedRow is a sum of [Queries.usageRows].
type usedRow struct{ Key, First, Second int64 }

// UsedByRoles is the usage from since until now by the present role of its user;
// former members are under 0.
func (q *Queries) UsedByRoles(project int64, since, now time.Time) (map[int64]UsageSums, error) {
	return q.usageSums(project, "COALESCE(members.role_id, 0)", since, now, func(db *gorm.DB) *gorm.DB {
		return db.Joins("LEFT JOIN members ON members.project_id = ? AND members.user_id = rows_in_use.user_id AND members.removed_at IS NULL",
			project)
	})
}

// UsedByUsers is the usage of some users in a project from since until now, by
// user.
func (q *Queries) UsedByUsers(project int64, users []int64, since, now time.Time) (map[int64]UsageSums, error) {
	return q.usageSums(project, "rows_in_use.user_id", since, now, func(db *gorm.DB) *gorm.DB {
		return db.Where("rows_in_use.user_id IN ?",
			users)
	})
}

// UsageSums is what was used in a time span, in amounts times seconds.
type UsageSums struct{ shares, holders usedRow }

// Over is the usage with the average over a span, or over the part of it outside of which
// nothing was used.
func (s UsageSums) Over(span time.Duration) (u models.Usage) {
	ShareUsage.addTo(&u, s.shares.First, s.shares.Second, span)
	HolderUsage.addTo(&u, s.holders.First, s.holders.Second, span)
	return u
}

// Amounts are the sums of GPU cores, GPU memory, CPU and memory, each times seconds.
func (s UsageSums) Amounts() [4]int64 {
	return [4]int64{s.shares.First, s.shares.Second, s.holders.First, s.holders.Second}
}

// Plus adds up two sums.
func (s UsageSums) Plus(other UsageSums) UsageSums {
	plus := func(a, b usedRow) usedRow { return usedRow{First: a.First + b.First, Second: a.Second + b.Second} }
	return UsageSums{plus(s.shares, other.shares), plus(s.holders, other.holders)}
}

func (q *Queries) usageSums(project int64, by string, since, now time.Time, restrict func(*gorm.DB) *gorm.DB) (map[int64]UsageSums, error) {
	sums := map[int64]UsageSums{}
	for _, in := range []UsageTable{ShareUsage, HolderUsage} {
		var rows []usedRow
		if err := restrict(q.usageRows(in, by, project, since, now)).Scan(&rows).Error; err != nil {
			return nil, err
		}
		for _, r := range rows {
			s := sums[r.Key]
			if in == ShareUsage {
				s.shares = r
			} else {
				s.holders = r
			}
			sums[r.Key] = s
		}
	}
	return sums, nil
}

// UsedByProjects is what all projects used from since until now, by project.
func (q *Queries) UsedByProjects(since, now time.Time) (map[int64]UsageSums, error) {
	return q.usageSums(0, "rows_in_use.project_id", since, now, func(db *gorm.DB) *gorm.DB { return db })
}

// usageRows adds up two columns, each times the seconds of its row that lie in a
// time span. Rows without an end and rows that ended within the span are read
// separately, so that an index excludes those that ended before. project is 0 for all.
func (q *Queries) usageRows(in UsageTable, by string, project int64, since, now time.Time) *gorm.DB {
	seconds := "MAX(0, (MIN(COALESCE(julianday(ended), julianday(?)), julianday(?)) - MAX(julianday(began), julianday(?))) * 86400)"
	if q.postgres {
		seconds = "GREATEST(0, EXTRACT(EPOCH FROM LEAST(COALESCE(ended, ?), ?) - GREATEST(began, ?)))"
	}
	sum := func(column string) string {
		return "CAST(COALESCE(SUM(ROUND(CAST(" + column + " * " + seconds + " AS NUMERIC))), 0) AS BIGINT)"
	}
	rows := "SELECT user_id, project_id, " + in.first + " AS a, " + in.second + " AS b, " + in.from + " AS began, " + in.until + " AS ended" +
		" FROM " + in.table + " WHERE "
	of := []any(nil)
	if project != 0 {
		rows, of = rows+"project_id = ? AND ", []any{project}
	}
	rows += in.until
	return q.db.Table("(?) AS rows_in_use", q.db.Raw(rows+" IS NULL UNION ALL "+rows+" > ?", slices.Concat(of, of, []any{since})...)).
		Select(by+" AS key, "+sum("a")+" AS first, "+sum("b")+" AS second", now, now, since, now, now, since).
		Where("began < ?", now).Group("key")
}

// UsesSimulated reports whether a project, or any if it is 0, has used simulated GPUs
// from since until now.
func (q *Queries) UsesSimulated(project int64, since, now time.Time) (bool, error) {
	db := q.db.Table("shares").Joins("JOIN devices ON devices.id = shares.device_id AND devices.simulated").
		Where("(shares.until_at IS NULL OR shares.until_at > ?) AND shares.from_at < ?", since, now)
	if project != 0 {
		db = db.Where("shares.project_id = ?", project)
	}
	return exists(db)
}
