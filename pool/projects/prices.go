package projects

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// PriceInput sets the price of a GPU core hour from an instant on.
type PriceInput struct {
	Model     string         `json:"model" maxLength:"100" doc:"exact model of a GPU that is or was in the pool"`
	Billing   models.Billing `json:"billing" enum:"on_demand,reserved,preemptible" doc:"billing model; reserved is for shares in reservations, preemptible for those in preemptible ones"`
	Micros    int64          `json:"micros" minimum:"0" maximum:"1000000000" doc:"price of a GPU core hour, in millionths of the currency"`
	Currency  string         `json:"currency" maxLength:"10" doc:"label of the currency, the same in all prices"`
	ValidFrom *time.Time     `json:"valid_from,omitempty" doc:"start; default and earliest now, but for the first price of a kind"`
}

// Prices lists all prices by model, billing model and time. It is for administrators and
// auditors.
func (s *Service) Prices(ctx context.Context, actor policies.Actor) ([]models.GPUPrice, error) {
	if err := s.access.Check(actor, policies.Platform, policies.CapacityRead); err != nil {
		return nil, err
	}
	return s.store.Read(ctx).Prices()
}

// PriceForm returns the models of GPUs for which a price can be set.
func (s *Service) PriceForm(ctx context.Context, actor policies.Actor) ([]string, error) {
	if err := s.access.Check(actor, policies.Platform, policies.CapacityWrite); err != nil {
		return nil, err
	}
	return s.store.Read(ctx).DeviceModels()
}

// SetPrice adds a price. Prices are not changed or removed, so that the cost of what was
// used stays as it is.
func (s *Service) SetPrice(ctx context.Context, actor policies.Actor, in PriceInput) (p models.GPUPrice, err error) {
	err = s.access.Write(ctx, s.store, actor, policies.Platform, policies.CapacityWrite, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil { // one price is checked against the others at a time
			return err
		}
		if p, err = in.price(q); err != nil {
			return err
		}
		if err := q.CreatePrice(&p); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "create", Object: "gpu_price", ID: p.ID, After: p})
	})
	return p, err
}

// CheckPrice validates a price without setting it.
func (s *Service) CheckPrice(ctx context.Context, actor policies.Actor, in PriceInput) error {
	if err := s.access.Check(actor, policies.Platform, policies.CapacityWrite); err != nil {
		return err
	}
	_, err := in.price(s.store.Read(ctx))
	return err
}

// price is the checked price that the input sets.
func (in PriceInput) price(q *store.Queries) (models.GPUPrice, error) {
	now := q.Now().UTC().Truncate(time.Millisecond)
	p := models.GPUPrice{Model: in.Model, Billing: in.Billing, Micros: in.Micros,
		Currency: strings.TrimSpace(in.Currency), ValidFrom: now, CreatedAt: now}
	if in.ValidFrom != nil {
		p.ValidFrom = in.ValidFrom.UTC().Truncate(time.Millisecond)
	}
	known, err := q.DeviceModels()
	if err != nil {
		return p, err
	}
	all, err := q.Prices()
	if err != nil {
		return p, err
	}
	return p, in.check(p, known, all, now)
}

func (in PriceInput) check(p models.GPUPrice, known []string, all []models.GPUPrice, now time.Time) error {
	var problems models.Problems
	models.CheckYear("valid_from", p.ValidFrom, &problems)
	if !slices.Contains(known, p.Model) {
		problems.Add("model", "no GPU of the pool has this model")
	}
	if !slices.Contains(models.Billings, p.Billing) {
		problems.Add("billing", "must be one of %s", "on_demand, reserved, preemptible")
	}
	if p.Micros < 0 || p.Micros > models.MaxPriceMicros {
		problems.Add("micros", "must be from %d to %d", 0, models.MaxPriceMicros)
	}
	invisible := func(r rune) bool { return r < '!' || r == 0x7f }
	if strings.ContainsFunc(p.Currency, invisible) || p.Currency == "" || len([]rune(p.Currency)) > 10 {
		problems.Add("currency", "must be 1 to %d visible characters", 10)
	} else if len(all) > 0 && all[0].Currency != p.Currency {
		problems.Add("currency", "must be %s, as in the other prices", all[0].Currency)
	}
	if len(all) >= store.MaxPrices {
		problems.Add("model", "the price list is full; it has %d prices", len(all))
	}
	same := slices.DeleteFunc(slices.Clone(all), func(o models.GPUPrice) bool { return o.Model != p.Model || o.Billing != p.Billing })
	switch n := len(same); {
	case n > 0 && p.ValidFrom.Before(now):
		problems.Add("valid_from", "must not be in the past: what was used keeps its cost")
	case n > 0 && !same[n-1].ValidFrom.Before(p.ValidFrom):
		problems.Add("valid_from", "must be after %s, from which the last price is valid", same[n-1].ValidFrom.UTC().Format(time.RFC3339))
	}
	return problems.Err()
}
