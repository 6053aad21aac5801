package store

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/models"
)

// ShareSum is the sum of shares in a span of time, at one price.
type ShareSum struct {
	Key       int64 // see [ShareGroup]
	Name      string
	Model     string
	Billing   models.Billing
	Price     int64 // ID of the price; 0: none was in force
	Simulated bool  // some of the devices are simulated
	CoreMS    int64 // GPU cores × milliseconds
}

// ShareKeys lists the IDs of a group that has shares or reservations in a span, by ID; more tells whether
// there are others after the page.
func (q *Queries) ShareKeys(in ShareSpan, by ShareGroup, page Page) (keys []int64, more bool, err error) {
	rows, args := q.sharesIn(in, by)
	reserved, argsReserved := q.reservedIn(in, by)
	err = q.db.Table("(SELECT key FROM (?) AS a UNION SELECT key FROM (?) AS b) AS r", q.db.Raw(rows, args...),
		q.db.Raw(reserved, argsReserved...)).Distinct("key").Where("key > ?", page.After).
		Order("key").Limit(page.limit()+1).Pluck("key", &keys).Error
	n := min(len(keys), page.limit())
	return keys[:n], n < len(keys), err
}

// ShareSums adds up shares by group, model, billing model and price. A share counts with
// the part of it that lies in the span, each part at the price in force.
func (q *Queries) ShareSums(in ShareSpan, by ShareGroup, prices []models.GPUPrice) (sums []ShareSum, err error) {
	rows, args := q.sharesIn(in, by)
	part := q.least("r.until_ms", "COALESCE(p.until_ms, r.until_ms)") + " - " + q.greatest("r.from_ms", "COALESCE(p.from_ms, r.from_ms)")
	join, priced := priceTable(prices)
	return sums, q.db.Raw(`WITH prices (model, billing, id, from_ms, until_ms) AS (`+join+`)
		SELECT r.key, r.name, r.model, r.billing, COALESCE(p.id, 0) AS price, MAX(r.simulated) = 1 AS simulated,
			CAST(SUM(r.cores * (`+part+`)) AS BIGINT) AS core_ms
		FROM (`+rows+`) AS r
		LEFT JOIN prices p ON p.model = r.model AND p.billing = r.billing AND p.from_ms < r.until_ms AND p.until_ms > r.from_ms
		GROUP BY r.key, r.name, r.model, r.billing, p.id ORDER BY 1, 2, 3, 4, 5`, slices.Concat(priced, args)...).Scan(&sums).Error
}

// ShareSteps adds up shares in each of n equal steps of a span that begins with it.
func (q *Queries) ShareSteps(in ShareSpan, step time.Duration, n int) ([]int64, error) {
	sums, err := q.ShareStepsBy(in, SharesTogether, step, n)
	steps := make([]int64, n)
	for _, s := range sums {
		steps[s.Step] = s.CoreMS
	}
	return steps, err
}

// ShareStep is the sum of a group of shares in one of equal steps of a span.
type ShareStep struct {
	Key    int64
	Step   int
	CoreMS int64 // GPU cores × milliseconds
}

// ShareStepsBy adds up shares by group in each of n equal steps of a span. What has none is
// left out.
func (q *Queries) ShareStepsBy(in ShareSpan, by ShareGroup, step time.Duration, n int) (sums []ShareStep, err error) {
	rows, args := q.sharesIn(in, by)
	var list strings.Builder
	for i := range n {
		end := in.From.Add(time.Duration(i+1) * step)
		if i == n-1 {
			end = in.Until
		}
		fmt.Fprintf(&list, ", (%d, %d, %d)", i, in.From.Add(time.Duration(i)*step).UnixMilli(), end.UnixMilli())
	}
	// Materialized: SQLite may otherwise read the shares once for each step.
	return sums, q.db.Raw(`WITH steps (step, from_ms, until_ms) AS (VALUES `+list.String()[2:]+`), r AS MATERIALIZED (`+rows+`)
		SELECT r.key, p.step, CAST(SUM(r.cores * (`+q.least("r.until_ms", "p.until_ms")+" - "+
		q.greatest("r.from_ms", "p.from_ms")+`)) AS BIGINT) AS core_ms
		FROM r JOIN steps p ON p.from_ms < r.until_ms AND p.until_ms > r.from_ms GROUP BY r.key, p.step ORDER BY 1, 2`, args...).Scan(&sums).Error
}

// sharesIn is SQL for the shares of a span, clipped to it. Open ones and those that ended
// within it are read separately, so that an index excludes those that ended before.
func (q *Queries) sharesIn(in ShareSpan, by ShareGroup) (string, []any) {
	from, until := in.From.Truncate(time.Millisecond), in.Until.Truncate(time.Millisecond)
	where, args := in.where(by, false)
	where, args = " WHERE s.from_at < ?"+where, append([]any{until}, args...)
	ended := q.least(q.milliseconds("s.until_at"), fmt.Sprint(until.UnixMilli()))
	rows := func(end string) string {
		return "SELECT " + by.key + " AS key, " + by.name + " AS name, d.model, " + billingOf + ` AS billing,
			CASE WHEN d.simulated THEN 1 ELSE 0 END AS simulated,
			s.cores, ` + q.greatest(q.milliseconds("s.from_at"), fmt.Sprint(from.UnixMilli())) + " AS from_ms, " + end + ` AS until_ms
			FROM shares s JOIN devices d ON d.id = s.device_id` + where
	}
	open := rows(fmt.Sprint(until.UnixMilli())) + " AND s.until_at IS NULL"
	return open + " UNION ALL " + rows(ended) + " AND s.until_at > ? AND s.until_at > s.from_at",
		slices.Concat(args, args, []any{from})
}

// priceTable is SQL for the spans in which prices are in force; before the first of a model
// and a billing model, the ID is 0. Prices are in the order of [Queries.Prices].
func priceTable(prices []models.GPUPrice) (string, []any) {
	const never = -1 << 62
	rows, args := []string{"('', '', 0, 0, 0)"}, []any(nil)
	add := func(p models.GPUPrice, id, from, until int64) {
		rows = append(rows, fmt.Sprintf("(?, ?, %d, %d, %d)", id, from, until))
		args = append(args, p.Model, string(p.Billing))
	}
	same := func(a, b models.GPUPrice) bool { return a.Model == b.Model && a.Billing == b.Billing }
	for i, p := range prices {
		if i == 0 || !same(prices[i-1], p) {
			add(p, 0, never, p.ValidFrom.UnixMilli())
		}
		end := int64(-never)
		if i+1 < len(prices) && same(prices[i+1], p) {
			end = prices[i+1].ValidFrom.UnixMilli()
		}
		add(p, p.ID, p.ValidFrom.UnixMilli(), end)
	}
	return "VALUES " + strings.Join(rows, ", "), args
}

// MeasuredUse is what was measured of shares in whole hours in which a share had its GPU
// alone: use is measured of devices, not of shares.
type MeasuredUse struct {
	Key         int64
	Name        string
	AllocatedMS int64 `gorm:"column:allocated_ms"` // GPU cores × milliseconds of the shares in these hours
	UsedMS      int64 `gorm:"column:used_ms"`      // the same, as utilized; at most 100 cores a device
}

// MeasuredUses adds up measured use in a span by group. Of MIG instances and GPUs under
// MIG, the driver does not measure it.
//
// The starts and ends of shares and the beginnings of hours are put in one order for each
// device. How many shares are open is then a running sum, and so is the sum of their IDs,
// which is that of the share where only one is.
func (q *Queries) MeasuredUses(in ShareSpan, by ShareGroup) (list []MeasuredUse, err error) {
	const live = "SELECT id, device_id, from_at, until_at FROM shares WHERE from_at < ? AND "
	sum := func(value string) string {
		return "SUM(" + value + ") OVER (PARTITION BY device_id ORDER BY at, hour, opened DESC ROWS UNBOUNDED PRECEDING)"
	}
	where, args := in.where(by, false)
	return list, q.db.Table(`(WITH live AS (`+live+`until_at IS NULL UNION ALL `+live+`until_at > ?), events AS (
			SELECT device_id, from_at AS at, 0 AS hour, 1 AS opened, id, 0 AS used FROM live
			UNION ALL SELECT device_id, until_at, 0, -1, -id, 0 FROM live WHERE until_at IS NOT NULL
			UNION ALL SELECT t.device_id, t.at, 1, 0, 0, t.utilisation_sum * 3600000 / t.samples
				FROM telemetry t JOIN devices d ON d.id = t.device_id AND d.parent_id IS NULL AND d.applied <> ?
				WHERE t.step = 3600 AND t.samples > 0 AND t.at >= ? AND t.at <= ?)
		SELECT device_id, at, hour, used, `+sum("opened")+` AS shares, CAST(`+sum("id")+` AS BIGINT) AS share_id,
			MIN(CASE WHEN hour = 0 THEN at END) OVER (PARTITION BY device_id ORDER BY at DESC, hour DESC ROWS UNBOUNDED PRECEDING) AS next_at
		FROM events) AS e`, in.Until, in.Until, in.From, models.SharingMIG, in.From, in.Until.Add(-time.Hour)).
		Joins("JOIN shares s ON s.id = e.share_id").Joins("JOIN devices d ON d.id = s.device_id").
		Where("e.hour = 1 AND e.shares = 1 AND (e.next_at IS NULL OR e.next_at >= "+q.hourAfter("e.at")+")"+where, args...).
		Select(by.key + " AS key, " + by.name + ` AS name, CAST(SUM(s.cores * 3600000) AS BIGINT) AS allocated_ms,
		CAST(SUM(e.used) AS BIGINT) AS used_ms`).Group("1, 2").Scan(&list).Error
}

// KeyNames are the names of the IDs of a group.
func (q *Queries) KeyNames(by ShareGroup, ids []int64) (map[int64]string, error) {
	if by == SharesByUser {
		return names(q.db.Table("users").Select("users.id, "+nameOf), "users.id", ids)
	}
	return names(q.db.Table("projects").Select("id, name"), "id", ids)
}
