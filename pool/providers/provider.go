package providers

import (
	"strconv"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// newProvider creates the provider of a machine. If the name is taken, a number is
// appended.
func newProvider(q *store.Queries, name, digest string) (models.Provider, error) {
	provider := models.Provider{Name: name, State: models.ProviderOnline, Machine: digest, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()}
	for n := int64(2); ; n++ {
		_, err := q.ProviderByName(provider.Name)
		if models.KindOf(err) == models.KindNotFound {
			return provider, q.CreateProvider(&provider)
		}
		if err != nil {
			return provider, err
		}
		provider.Name = name + "-" + strconv.FormatInt(n, 10)
	}
}

// rename sets the name of a provider, unless it is taken.
func rename(q *store.Queries, p *models.Provider, name string) error {
	if name == "" || p.Name == name {
		return nil
	}
	_, err := q.ProviderByName(name)
	if models.KindOf(err) == models.KindNotFound {
		p.Name, err = name, nil
	}
	return err
}

// remove removes a provider with its devices from the pool.
func remove(q *store.Queries, p *models.Provider, actor policies.Actor) error {
	before := *p
	p.State, p.Reason = models.ProviderOffline, models.Text{}
	p.Draining, p.RecallAt, p.RecallReason, p.ReportedCode, p.Agent = false, nil, "", "", false
	if err := q.UpdateProvider(p); err != nil {
		return err
	}
	devices, err := q.DevicesOf(p.ID)
	if err != nil {
		return err
	}
	if _, err := markAbsent(q, p.Name, devices, nil); err != nil {
		return err
	}
	return actor.Audit(q, policies.Change{Action: "retire", Object: "provider", ID: p.ID, Before: before, After: *p})
}
