package store

import (
	"fmt"
	"slices"
	"time"
)

// ReservedUnused is what was reserved in a span of time and that nothing used.
type ReservedUnused struct {
	Key       int64 // see [ShareGroup]
	Name      string
	Simulated bool  // some of the devices are simulated
	CoreMS    int64 // GPU cores × milliseconds
}

// ReservedUnused adds up by group what was reserved in a span and not used; groups without any are left out. Nothing holds
// it, so there is none by holder.
func (q *Queries) ReservedUnused(in ShareSpan, by ShareGroup) (sums []ReservedUnused, err error) {
	if by.reserved == "" {
		return nil, nil
	}
	rows, args := q.reservedIn(in, by)
	return sums, q.db.Raw(`SELECT r.key, r.name, MAX(r.simulated) = 1 AS simulated, CAST(SUM(r.core_ms) AS BIGINT) AS core_ms
		FROM (`+rows+`) AS r GROUP BY 1, 2 HAVING SUM(r.core_ms) > 0 ORDER BY 1, 2`, args...).Scan(&sums).Error
}

// reservedIn is SQL for what was reserved in a span, clipped to it, and, negative, what shares used of it.
func (q *Queries) reservedIn(in ShareSpan, by ShareGroup) (string, []any) {
	from, until := in.From.Truncate(time.Millisecond), in.Until.Truncate(time.Millisecond)
	where, args := in.where(by, true)
	where, args = " WHERE g.starts_at < ? AND g.ends_at > ? AND g.ends_at > g.starts_at"+where, append([]any{until, from}, args...)
	first, last := fmt.Sprint(from.UnixMilli()), fmt.Sprint(until.UnixMilli())
	end := q.least(q.milliseconds("g.ends_at"), last)
	rows := func(cores, from, until, join string) string {
		return "SELECT " + by.key + " AS key, " + by.reserved + " AS name, CASE WHEN d.simulated THEN 1 ELSE 0 END AS simulated, " +
			cores + " * (" + until + " - " + q.greatest(q.milliseconds(from), first) + `) AS core_ms
			FROM reservation_grants g JOIN reservations s ON s.id = g.reservation_id JOIN devices d ON d.id = g.device_id` + join + where
	}
	const used = ` JOIN shares u ON u.device_id = g.device_id AND u.from_at >= g.starts_at AND u.from_at < g.ends_at AND u.grant_id = g.id
		AND u.from_at < ? AND (u.until_at IS NULL OR u.until_at > ?)`
	return rows("g.cores", "g.starts_at", end, "") + " UNION ALL " +
			rows("-u.cores", "u.from_at", q.least(end, "COALESCE("+q.milliseconds("u.until_at")+", "+last+")"), used),
		slices.Concat(args, []any{until, from}, args)
}
