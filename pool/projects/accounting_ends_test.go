package projects_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/pool/projects"
)

// A share counts once and to the end that the database has, also if a restarted server ends
// its holder again; while it is open, it counts until now.
func TestAccountingEndsWithTheShare(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m := o.NewTeam(t, "vision")
		begin, holder := o.Store.Now(), o.holder(t, m)
		share := models.Share{DeviceID: o.deviceOf(t, "H100"), HolderID: holder, ProjectID: m.ProjectID, UserID: m.UserID, Cores: 30,
			Enforcement: models.EnforcedAdvisory, From: begin}
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.CreateShare(&share) })
		counted := func(want time.Duration) {
			t.Helper()
			a, err := o.Accounting(o.Ctx, o.Root, m.ProjectID, projects.AccountingQuery{}, store.Page{})
			if err != nil || a.Total.CoreMS != 30*want.Milliseconds() || len(a.Rows) != 1 || a.Rows[0].CoreMS != a.Total.CoreMS {
				t.Errorf("%+v, %v; want 30 cores for %s", a, err, want)
			}
		}
		o.Clock.Advance(time.Hour)
		counted(time.Hour)
		end := func() {
			storetest.InTx(t, o.Store, func(q *store.Queries) error { return q.EndShares(holder, q.Now()) })
		}
		o.Clock.Advance(time.Minute)
		end()
		counted(time.Hour + time.Minute)
		o.Clock.Advance(day)
		end()
		counted(time.Hour + time.Minute)
	})
}

// Use is measured in whole hours in which a share has its GPU alone; elsewhere there is none.
func TestMeasuredUse(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		m, other := o.NewTeam(t, "vision"), o.NewTeam(t, "speech")
		device := o.deviceOf(t, "H100")
		o.Clock.Advance(day)
		holders := map[int64]int64{m.ID: o.holder(t, m), other.ID: o.holder(t, other)}
		hour := o.Store.Now().Truncate(time.Hour).Add(-10 * time.Hour)
		storetest.InTx(t, o.Store, func(q *store.Queries) error {
			// Alone in hours 1 and 2, with another in hour 3, alone in a part of hour 0 and 4,
			// and exactly in hour 5.
			for _, s := range []struct {
				member      models.Member
				from, until time.Duration
			}{{m, 30 * time.Minute, 270 * time.Minute}, {other, 200 * time.Minute, 210 * time.Minute}, {m, 5 * time.Hour, 6 * time.Hour}} {
				share := models.Share{DeviceID: device, HolderID: holders[s.member.ID], ProjectID: s.member.ProjectID, UserID: s.member.UserID, Cores: 50,
					Enforcement: models.EnforcedAdvisory, From: hour.Add(s.from), Until: new(hour.Add(s.until))}
				if err := q.CreateShare(&share); err != nil {
					return err
				}
			}
			var list []models.Telemetry
			for i := range 6 {
				at := hour.Add(time.Duration(i) * time.Hour).UTC()
				list = append(list, models.Telemetry{DeviceID: device, Step: 3600, Slot: int64(i), At: at, Samples: 4, UtilisationSum: 4 * 10 * int64(i)},
					models.Telemetry{DeviceID: device, Step: 60, Slot: int64(i), At: at, Samples: 1, UtilisationSum: 100})
			}
			return q.AddTelemetry(list)
		})
		long := projects.AccountingQuery{UsageQuery: projects.UsageQuery{From: hour.AddDate(0, -1, 0).Format(time.RFC3339)}}
		a, err := o.Accounting(o.Ctx, o.Root, 0, long, store.Page{})
		if err != nil || len(a.Rows) != 2 {
			t.Fatal(a, err)
		}
		const ms = 3_600_000
		if r := a.Rows[0]; r.MeasuredMS != 3*50*ms || r.UsedMS != (10+20+50)*ms || r.CoreMS != 5*50*ms {
			t.Errorf("alone: %+v", r)
		}
		if r := a.Rows[1]; r.MeasuredMS != 0 || r.UsedMS != 0 || r.CoreMS != 50*ms/6 {
			t.Errorf("never alone: %+v", r)
		}
		if a.Total.MeasuredMS != 3*50*ms || a.Total.UsedMS != 80*ms {
			t.Errorf("in total: %+v", a.Total)
		}
	})
}
