package store

import (
	"time"

	"weir/models"
)

// ShareSpan selects the shares of a span of time, and by whom. Times count in whole
// milliseconds.
type ShareSpan struct {
	From, Until time.Time
	Project     int64  // 0: all
	User        int64  // 0: all
	Model       string // of the devices; empty: all
	Billing     models.Billing
	Holder      models.HolderKind
	Among       []int64 // projects or users, as the sums are grouped; nil: all
}

// where is SQL for which shares s of devices d are in a span, but for its time, or for which reservations s.
func (in ShareSpan) where(by ShareGroup, reservations bool) (conditions string, args []any) {
	billing, holder := SharesByBilling.name, SharesByHolder.name
	if reservations {
		billing, holder = SharesByBilling.reserved, "''" // nothing holds what is not used
	}
	for _, c := range []struct {
		given bool
		sql   string
		arg   any
	}{{in.Project != 0, "s.project_id = ?", in.Project}, {in.User != 0, "s.user_id = ?", in.User},
		{in.Model != "", "d.model = ?", in.Model}, {in.Billing != "", billing + " = ?", in.Billing},
		{in.Holder != "", holder + " = ?", in.Holder}, {in.Among != nil, by.key + " IN ?", in.Among}} {
		if c.given {
			conditions, args = conditions+" AND "+c.sql, append(args, c.arg)
		}
	}
	return conditions, args
}

// ShareGroup is by what shares are summed, and what is reserved: of a reservation s, empty where it has none.
type ShareGroup struct{ key, name, reserved string }

// Groups of shares. Those with a key are by ID, the others by a name.
var (
	SharesByProject = ShareGroup{"s.project_id", "''", "''"}
	SharesByUser    = ShareGroup{"s.user_id", "''", "''"}
	SharesByModel   = ShareGroup{"0", "d.model", "d.model"}
	SharesByHolder  = ShareGroup{"0", "(SELECT kind FROM holders WHERE holders.id = s.holder_id)", ""}
	SharesByBilling = ShareGroup{"0", billingOf, "CASE s.qos WHEN 'preemptible' THEN 'preemptible' ELSE 'reserved' END"}
	SharesTogether  = ShareGroup{"0", "''", "''"}
)

const billingOf = `CASE WHEN s.grant_id IS NULL THEN 'on_demand' WHEN EXISTS (SELECT 1 FROM reservation_grants g
	JOIN reservations o ON o.id = g.reservation_id AND o.qos = 'preemptible' WHERE g.id = s.grant_id) THEN 'preemptible' ELSE 'reserved' END`

// Keyed reports whether the group is by ID.
func (g ShareGroup) Keyed() bool { return g.key != "0" }
