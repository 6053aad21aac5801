package projects

import (
	"time"

	"weir/models"
	"weir/models/store"
)

// Confirmation allows a change to allocate more than the pool's capacity.
type Confirmation struct {
	Confirm bool   `json:"confirm,omitempty" doc:"allocate even if quotas then exceed the pool's capacity"`
	Reason  string `json:"reason,omitempty" maxLength:"2000" doc:"reason; required to allocate above the pool's capacity, and recorded in the audit log"`
}

// auditedProject is a project as the audit log records it.
type auditedProject struct {
	models.Project
	Beyond []string `json:"beyond,omitempty"` // confirmed allocations above the capacity
	Reason string   `json:"reason,omitempty"` // of the confirmation
}

// Growth is by how much the allocated quotas grow when a project changes. A project
// allocates nothing after its period of use.
func Growth(before, after models.Project, now time.Time) models.Resources {
	return allocatedTo(after, now).Sub(allocatedTo(before, now))
}

func allocatedTo(p models.Project, now time.Time) models.Resources {
	if p.EndsAt != nil && !p.EndsAt.After(now) {
		return models.Resources{}
	}
	return p.Quota
}

// confirmed is the project to be saved as the audit log records it. It refuses to
// allocate more than the capacity allows, unless that is confirmed with a reason.
func (e Editor) confirmed(before, after models.Project, in Confirmation) (a auditedProject, err error) {
	a.Project = after
	more := Growth(before, after, e.q.Now())
	if len(more.Exceeding(models.Resources{})) == 0 {
		return a, nil
	}
	if err := e.LockCapacity(); err != nil {
		return a, err
	}
	over, err := e.pool.beyond(e.q, more)
	if err != nil || len(over) == 0 {
		return a, err
	}
	if !in.Confirm || in.Reason == "" {
		return a, notConfirmed(over, in)
	}
	for _, t := range over {
		a.Beyond = append(a.Beyond, t.String())
	}
	a.Reason = in.Reason
	return a, nil
}

// LockCapacity keeps others from allocating, until the transaction ends, what an open quota
// is filled from.
func (e Editor) LockCapacity() error { return e.q.LockPool() }

func notConfirmed(over []models.Text, in Confirmation) error {
	e := models.NoCapacity("", "This would allocate more than the pool's capacity allows. No changes were made. Confirm and give a reason, or allocate less.")
	e.Fields = []models.Field{{Name: "confirm", Reason: models.Join(over...)}}
	if in.Reason == "" {
		e.Fields = append(e.Fields, models.Field{Name: "reason", Reason: models.Say("is required to exceed the capacity")})
	}
	return e
}

// beyond describes how much more than is allocatable would be allocated with more.
func (c *Capacity) beyond(q *store.Queries, more models.Resources) ([]models.Text, error) {
	rows, err := c.ByResource(q)
	return Beyond(rows, more), err
}

// Beyond describes how much more than is allocatable would be allocated with more.
func Beyond(rows []CapacityRow, more models.Resources) (texts []models.Text) {
	mores := more.Amounts()
	for i, r := range rows {
		if over := r.Beyond(mores[i].Value); over > 0 {
			texts = append(texts, models.Say("%s: %s would be allocated, %s more than the maximum of %s (%d%% of the pool's capacity of %s)",
				r.Label,
				models.Quantity(r.Name, r.Value+mores[i].Value), models.Quantity(r.Name, over), models.Quantity(r.Name, r.Allocatable),
				r.Ratio, models.Quantity(r.Name, r.Capacity)))
		}
	}
	return texts
}
