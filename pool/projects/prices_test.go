package projects_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// Prices are appended: what was used keeps its cost, and all are in one currency.
func TestPricesAreAppended(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		o.deviceOf(t, "H100")
		auditor := o.Actor(t, models.User{ID: o.NewPerson(t).ID, Auditor: true})
		at := func(d time.Duration) *time.Time { return new(o.Store.Now().Add(d)) }
		set := func(change func(*projects.PriceInput)) error {
			in := projects.PriceInput{Model: "H100", Billing: models.BillingOnDemand, Micros: 10_000, Currency: "EUR"}
			change(&in)
			return pooltest.Error(o.SetPrice(o.Ctx, o.Root, in))
		}
		pooltest.WantError(t, pooltest.Error(o.SetPrice(o.Ctx, auditor, projects.PriceInput{})), models.KindForbidden)
		for field, change := range map[string]func(*projects.PriceInput){
			"model":      func(in *projects.PriceInput) { in.Model = "h100" },
			"billing":    func(in *projects.PriceInput) { in.Billing = "spot" },
			"micros":     func(in *projects.PriceInput) { in.Micros = models.MaxPriceMicros + 1 },
			"currency":   func(in *projects.PriceInput) { in.Currency = "E U R" },
			"valid_from": func(in *projects.PriceInput) { in.ValidFrom = at(-100 * 365 * day) },
		} {
			pooltest.WantError(t, set(change), models.KindInvalid, field)
		}
		pooltest.NoError(t, set(func(in *projects.PriceInput) { in.ValidFrom = at(-day) }))
		pooltest.WantError(t, set(func(in *projects.PriceInput) { in.ValidFrom = at(-time.Hour) }), models.KindInvalid, "valid_from")
		pooltest.WantError(t, set(func(in *projects.PriceInput) { in.Currency = "USD" }), models.KindInvalid, "currency")
		pooltest.NoError(t, set(func(in *projects.PriceInput) { in.ValidFrom = at(day) }))
		pooltest.WantError(t, set(func(in *projects.PriceInput) { in.ValidFrom = at(day) }), models.KindInvalid, "valid_from")
		pooltest.NoError(t, set(func(in *projects.PriceInput) { in.Billing = models.BillingReserved; in.Micros = 0 }))

		list, err := o.Prices(o.Ctx, auditor)
		if err != nil || len(list) != 3 || !list[0].ValidFrom.Before(list[1].ValidFrom) || list[2].Billing != models.BillingReserved {
			t.Errorf("the prices are %+v, %v", list, err)
		}
		pooltest.WantError(t, pooltest.Error(o.Prices(o.Ctx, o.Actor(t, o.NewPerson(t)))), models.KindForbidden)
		entries, err := o.Store.Read(o.Ctx).Audit(store.AuditFilter{Object: "gpu_price"}, store.Page{})
		if err != nil || len(entries) != 3 {
			t.Errorf("%d audit entries, %v", len(entries), err)
		}
	})
}
