package providers

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// ProviderInput is the settings of a provider.
type ProviderInput struct {
	Name    string       `json:"name" maxLength:"100"`
	OwnerID *int64       `json:"owner_id,omitempty" doc:"user ID of the owner; changes require platform administrator"`
	Terms   models.Terms `json:"terms"`
	Version int64        `json:"-"`
}

// RecallInput is the input of a recall.
type RecallInput struct {
	GraceMinutes int64  `json:"grace_minutes" minimum:"0" maximum:"10080" doc:"grace period until the shares end, minutes"`
	Reason       string `json:"reason,omitempty" maxLength:"500" doc:"message to the affected users"`
	Version      int64  `json:"-"`
}

const maxNotification = 7 * 24 * 60 // minutes

// Check validates and normalizes the input.
func (in *ProviderInput) Check() error {
	var problems models.Problems
	in.Name = models.CheckName("name", in.Name, &problems)
	in.Terms.Check(&problems)
	return problems.Err()
}

// Check validates the input.
func (in RecallInput) Check() error {
	var problems models.Problems
	if in.GraceMinutes < 0 || in.GraceMinutes > maxNotification {
		problems.Add("grace_minutes", "must be from 0 to %d minutes", int64(maxNotification))
	}
	if utf8.RuneCountInString(in.Reason) > 500 {
		problems.Add("reason", "must be at most %d characters", 500)
	}
	return problems.Err()
}

// Update sets a provider's name, terms and, by an administrator, owner. The terms
// apply to new shares, in reservations too; the lending hours to all.
func (s *Service) Update(ctx context.Context, actor policies.Actor, id int64, in ProviderInput) (models.Provider, error) {
	if err := in.Check(); err != nil {
		return models.Provider{}, err
	}
	return s.manage(ctx, actor, id, in.Version, "update", func(q *store.Queries, provider *models.Provider) error {
		if err := s.checkTerms(q, *provider, in.Terms); err != nil {
			return err
		}
		if in.OwnerID != nil && *in.OwnerID != provider.Owner() {
			if err := s.access.Check(actor, policies.Platform, policies.ProviderWrite); err != nil {
				return err
			}
			if _, err := q.User(*in.OwnerID); err != nil {
				return models.Invalid("owner_id", "is not an existing account")
			}
			provider.OwnerID = in.OwnerID
		}
		if in.Name != provider.Name && NamedByNode(*provider) {
			return models.Invalid("name", "is that of a node of the cluster, by which its pods are placed, and cannot be changed")
		}
		former := provider.Terms
		provider.Name, provider.Terms = in.Name, in.Terms
		return tellExcluded(q, *provider, former)
	})
}

// checkTerms refuses other providers' devices and unknown projects.
func (s *Service) checkTerms(q *store.Queries, provider models.Provider, t models.Terms) error {
	devices, err := q.DevicesOf(provider.ID)
	if err != nil {
		return err
	}
	for _, id := range t.Devices {
		if !slices.ContainsFunc(devices, func(d models.Device) bool { return d.ID == id && d.ParentID == nil }) {
			return models.Invalid("devices", "device %d is not a GPU of this provider", id)
		}
	}
	for _, id := range t.Projects {
		if _, err := q.Project(store.AllProjects, id); err != nil {
			return models.Invalid("projects", "project %d does not exist", id)
		}
	}
	return nil
}

// Drain stops the placement of new shares on a provider. Open shares stay.
func (s *Service) Drain(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error) {
	return s.manage(ctx, actor, id, version, "drain", func(q *store.Queries, provider *models.Provider) error {
		told := provider.Draining || provider.RecallAt != nil
		if provider.Draining = true; told {
			return nil
		}
		return tellReserved(q, id, anyReservation, func(what models.Text, from models.Instant) models.Text {
			return models.Say("The machine %s is being drained. Your reservation of %s from %s may not be usable any more.", provider.Name, what, from)
		})
	})
}

// Resume cancels a drain and a recall.
func (s *Service) Resume(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error) {
	return s.manage(ctx, actor, id, version, "resume", func(_ *store.Queries, provider *models.Provider) error {
		provider.Draining, provider.RecallAt, provider.RecallReason = false, nil, ""
		return nil
	})
}

// Recall ends a provider's shares after a grace period. The end is announced to
// their workspaces, which are stopped then.
func (s *Service) Recall(ctx context.Context, actor policies.Actor, id int64, in RecallInput) (models.Provider, error) {
	if err := in.Check(); err != nil {
		return models.Provider{}, err
	}
	return s.manage(ctx, actor, id, in.Version, "recall", func(q *store.Queries, provider *models.Provider) error {
		told := provider.RecallAt != nil
		at := q.Now().Add(time.Duration(in.GraceMinutes) * time.Minute)
		if provider.RecallAt, provider.RecallReason = &at, in.Reason; told {
			return nil
		}
		return tellReserved(q, id, anyReservation, func(what models.Text, from models.Instant) models.Text {
			return models.Say("The owner of %s has recalled its GPUs. Your reservation of %s from %s may not be usable any more.", provider.Name, what, from)
		})
	})
}

// Remove removes a provider from the pool and revokes its agent. It is refused
// while there are open shares. The broker cancels the reservations of its devices.
func (s *Service) Remove(ctx context.Context, actor policies.Actor, id, version int64) (models.Provider, error) {
	return s.manage(ctx, actor, id, version, "retire", func(q *store.Queries, provider *models.Provider) error {
		inUse, err := q.OpenSharesAt(id)
		if err == nil {
			err = s.CheckRemove(*provider, inUse)
		}
		if err != nil {
			return err
		}
		if err := q.RevokeAgents(id, q.Now(), models.Say("the provider was removed"), false); err != nil {
			return err
		}
		return remove(q, provider, actor)
	})
}

// CheckRemove refuses to remove a provider with open shares, and the machine of
// the portal itself.
func (s *Service) CheckRemove(p models.Provider, shares int64) error {
	switch {
	case p.ID == s.home.Load():
		return models.Conflict("This provider is the machine that the portal runs on and cannot be removed. Drain it instead.")
	case shares > 0:
		return models.Conflict("%d shares of this provider are still in use. Recall its GPUs first.", shares)
	}
	return nil
}

// manage changes a provider under the pool's lock, derives its state, and announces
// changed ends of its shares.
func (s *Service) manage(ctx context.Context, actor policies.Actor, id, version int64, action string,
	change func(*store.Queries, *models.Provider) error) (provider models.Provider, err error) {
	if provider, err = s.store.Read(ctx).Provider(id); err != nil {
		return provider, err
	}
	ownerID := provider.Owner()
	err = s.access.WriteOwned(ctx, s.store, actor, ownerID, policies.Platform, policies.ProviderWrite, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		if provider, err = q.Provider(id); err != nil {
			return err
		}
		if provider.Owner() != ownerID {
			return models.CheckVersion("provider", -1, provider.Version)
		}
		if err := models.CheckVersion("provider", version, provider.Version); err != nil {
			return err
		}
		if provider.State == models.ProviderOffline {
			return models.Conflict("%s is no longer in the pool.", provider.Name)
		}
		before := provider
		if err := change(q, &provider); err != nil || provider.State == models.ProviderOffline {
			return err
		}
		if provider.State != models.ProviderLost {
			provider.State = provider.ReachableState()
		}
		if err := q.UpdateProvider(&provider); err != nil {
			return err
		}
		if err := announceEnd(q, provider); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: action, Object: "provider", ID: id, Before: before, After: provider})
	})
	return provider, err
}
