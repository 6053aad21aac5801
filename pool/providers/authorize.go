package providers

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// codeLife is how long an authorization code is valid.
const codeLife = 15 * time.Minute

// AuthorizeInput is the input for an authorization code.
type AuthorizeInput struct {
	GPUCode string `json:"gpu_code" doc:"GPU code shown by the agent"`
	Name    string `json:"name,omitempty" doc:"provider name; empty for the machine's host name"`
	OwnerID int64  `json:"owner_id,omitempty" doc:"user ID of the owner; 0 for the previous owner, or yourself"`
}

// Check validates and normalizes the input.
func (in *AuthorizeInput) Check() error {
	p := in.problems()
	return p.Err()
}

func (in *AuthorizeInput) problems() (p models.Problems) {
	if _, ok := ParseGPUCode(in.GPUCode); !ok {
		p.Add("gpu_code", "must be the 16 letters and digits that “weir agent” shows on the machine")
	}
	if in.Name != "" {
		in.Name = models.CheckName("name", in.Name, &p)
	}
	return p
}

// Authorize creates a code with which the machine with this GPU code can enroll
// once within 15 minutes. Only a hash of the code is stored.
func (e *Enrollment) Authorize(ctx context.Context, actor policies.Actor, in AuthorizeInput) (
	code string, a models.Authorization, err error) {
	gpuCode, _ := ParseGPUCode(in.GPUCode)
	given := in.OwnerID != 0
	if !given {
		in.OwnerID = actor.User.ID
	}
	secret := e.Authority.NewCode()
	err = e.Access.Write(ctx, e.Store, actor, policies.Platform, policies.ProviderWrite, func(q *store.Queries) error {
		p := in.problems()
		if err := checkOwnerAndName(q, in, gpuCode, &p); err != nil {
			return err
		}
		if err := p.Err(); err != nil {
			return err
		}
		now := q.Now()
		a = models.Authorization{Hash: secret.Hash(), GPUCode: gpuCode, Name: in.Name, OwnerID: in.OwnerID, OwnerGiven: given,
			IssuedBy:  actor.User.ID,
			CreatedAt: now, ExpiresAt: now.Add(codeLife)}
		if a.IssuedBy == 0 { // on the command line
			a.IssuedBy = in.OwnerID
		}
		if err := q.CreateAuthorization(&a); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "create", Object: "authorization", ID: a.ID,
			After: map[string]any{"gpu_code": a.GPUCode, "name": a.Name, "owner_id": a.OwnerID, "expires_at": a.ExpiresAt}})
	})
	return secret.String(), a, err
}

func checkOwnerAndName(q *store.Queries, in AuthorizeInput, gpuCode string, p *models.Problems) error {
	owner, err := q.User(in.OwnerID)
	switch {
	case models.KindOf(err) == models.KindNotFound:
		p.Add("owner_id", "is not an existing account")
	case err != nil:
		return err
	case owner.Disabled:
		p.Add("owner_id", "the account is disabled")
	}
	if in.Name == "" {
		return nil
	}
	other, err := q.ProviderByName(in.Name)
	if err != nil {
		return models.IgnoreNotFound(err)
	}
	if other.GPUCode != gpuCode && other.ReportedCode != gpuCode {
		p.Add("name", "is already taken")
	}
	return nil
}

// Authorizations lists the valid unused authorizations, newest first, without
// their codes.
func (e *Enrollment) Authorizations(ctx context.Context, actor policies.Actor) ([]models.Authorization, error) {
	if err := e.Access.Check(actor, policies.Platform, policies.ProviderRead); err != nil {
		return nil, err
	}
	return e.Store.Read(ctx).OpenAuthorizations(e.Store.Now())
}

// Accept authorizes the GPUs that the agent of a provider reports now.
func (e *Enrollment) Accept(ctx context.Context, actor policies.Actor, providerID, version int64) (provider models.Provider, err error) {
	return e.decide(ctx, actor, providerID, version, "accept", func(q *store.Queries, p *models.Provider) error {
		if p.ReportedCode == "" {
			return models.Conflict("%s has no GPUs waiting for authorization.", p.Name)
		}
		p.GPUCode, p.ReportedCode, p.Reason = p.ReportedCode, "", models.Text{}
		if p.State != models.ProviderLost {
			p.State = p.ReachableState()
		}
		return q.UpdateProvider(p)
	})
}

// Revoke revokes the agent of a provider: its next request is rejected. Open
// shares stay until they are released.
func (e *Enrollment) Revoke(ctx context.Context, actor policies.Actor, providerID, version int64) (models.Provider, error) {
	return e.decide(ctx, actor, providerID, version, "revoke", func(q *store.Queries, p *models.Provider) error {
		if err := q.RevokeAgents(p.ID, q.Now(), models.Say("revoked by an administrator"), true); err != nil {
			return err
		}
		return markLost(q, p, models.Say("its agent was revoked by an administrator"))
	})
}

// decide changes a provider that has an active agent.
func (e *Enrollment) decide(ctx context.Context, actor policies.Actor, id, version int64, action string,
	change func(*store.Queries, *models.Provider) error) (provider models.Provider, err error) {
	err = e.Access.Write(ctx, e.Store, actor, policies.Platform, policies.ProviderWrite, func(q *store.Queries) error {
		if err := q.LockPool(); err != nil {
			return err
		}
		if provider, err = q.Provider(id); err != nil {
			return err
		}
		if err := models.CheckVersion("provider", version, provider.Version); err != nil {
			return err
		}
		if _, err := q.AgentOf(id); err != nil {
			if models.KindOf(err) == models.KindNotFound {
				err = models.Conflict("%s has no active agent. Enroll one with an authorization code.", provider.Name)
			}
			return err
		}
		before := provider
		if err := change(q, &provider); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: action, Object: "agent", ID: id, Before: before, After: provider})
	})
	return provider, err
}
