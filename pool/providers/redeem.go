package providers

import (
	"cmp"
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/authority"
)

// Redeem enrolls an agent with a code. In one transaction the code is redeemed, an
// older agent of the machine is revoked, and the machine's GPUs are registered. An
// agent that did not get the response can repeat the request with the same key
// while the code is valid.
func (e *Enrollment) Redeem(ctx context.Context, r Redemption, address string) (out Enrolled, err error) {
	c, err := e.checkRedemption(r, address)
	if err != nil {
		return out, err
	}
	// The request is unauthenticated: do not take the pool's lock for invalid codes.
	if _, err := validAuthorization(e.Store.Read(ctx), c.hash); err != nil {
		return out, err
	}
	err = e.inTx(ctx, func(q *store.Queries) error {
		out, err = e.redeem(q, c)
		return err
	})
	if err != nil {
		return Enrolled{}, err
	}
	models.Failpoint("redeem.committed")
	return out, nil
}

// checkRedemption makes the checks without the database.
func (e *Enrollment) checkRedemption(r Redemption, address string) (applicant, error) {
	c := applicant{Redemption: r, address: address}
	var p models.Problems
	code, err := authority.ParseCode(r.Code)
	switch {
	case err != nil:
		p.Add("code", "cannot be read: %s", err.Error())
	case code.Fingerprint != e.Authority.Fingerprint():
		p.Add("code", "was issued by another portal")
	}
	c.hash = code.Hash()
	if c.request, err = authority.CheckRequest([]byte(r.CSR)); err != nil {
		p.Add("csr", "cannot be accepted: %s", err.Error())
	}
	c.Name = models.CheckName("name", r.Name, &p)
	checkMachine(r.Machine, r.Devices, &p)
	if err := p.Err(); err != nil {
		return c, err
	}
	c.gpuCode = GPUCodeOf(r.Machine, r.Devices)
	return c, nil
}

func (e *Enrollment) redeem(q *store.Queries, c applicant) (out Enrolled, err error) {
	a, err := validAuthorization(q, c.hash)
	switch {
	case err != nil:
		return out, err
	case a.GPUCode != c.gpuCode:
		return out, reject(q, a, c, models.Invalid("code", "is for the GPU code %s, but this machine has %s", a.GPUCode, c.gpuCode))
	case a.RedeemedAt != nil:
		return e.repeat(q, a, c)
	}
	if claimed, err := q.RedeemAuthorization(c.hash, c.request.KeyHash, q.Now()); err != nil {
		return out, err
	} else if !claimed {
		return out, usedCode()
	}
	before, provider, err := providerFor(q, a, c)
	if err != nil {
		return out, err
	}
	return e.admit(q, admission{applicant: c, actor: enrollment, before: before, provider: provider, by: &a})
}

// validAuthorization finds the authorization of a code that has not expired.
func validAuthorization(q *store.Queries, hash string) (models.Authorization, error) {
	a, err := q.AuthorizationByHash(hash)
	switch {
	case models.KindOf(err) == models.KindNotFound:
		return a, models.Invalid("code", "is not a known code")
	case err != nil || q.Now().Before(a.ExpiresAt):
		return a, err
	case a.RedeemedAt != nil:
		return a, usedCode()
	}
	return a, models.Invalid("code", "expired after %d minutes; get a new one from an administrator", int64(codeLife.Minutes()))
}

func usedCode() error {
	return models.Conflict("This authorization code has already been used. Get a new one from an administrator.")
}

// providerFor finds or creates the provider of a machine; before is nil for a new
// one. It keeps its owner, unless the authorization names another.
func providerFor(q *store.Queries, a models.Authorization, c applicant) (before *models.Provider, p models.Provider, err error) {
	if p, err = q.ProviderByMachine(c.Machine); err == nil {
		was := p
		before = &was
	} else {
		if models.IgnoreNotFound(err) != nil {
			return nil, p, err
		}
		if p, err = newProvider(q, cmp.Or(a.Name, c.Name), c.Machine); err != nil {
			return nil, p, err
		}
	}
	if err := rename(q, &p, a.Name); err != nil {
		return nil, p, err
	}
	if a.OwnerGiven || p.OwnerID == nil {
		p.OwnerID = &a.OwnerID
	}
	p.Agent, p.GPUCode, p.ReportedCode, p.Address = true, a.GPUCode, "", c.address
	return before, p, q.UpdateProvider(&p)
}

// repeat responds to a redeemed code. If the agent with the same key has sent no
// heartbeat yet, it may not have received the first response.
func (e *Enrollment) repeat(q *store.Queries, a models.Authorization, c applicant) (Enrolled, error) {
	if a.KeyHash == c.request.KeyHash && a.AgentID != nil {
		agent, err := q.Agent(*a.AgentID)
		if err != nil {
			return Enrolled{}, err
		}
		if agent.RevokedAt == nil && agent.PreviousHash == "" {
			provider, err := q.Provider(agent.ProviderID)
			if err != nil {
				return Enrolled{}, err
			}
			return e.issueCertificate(q, provider, &agent, c.request)
		}
	}
	return Enrolled{}, reject(q, a, c, usedCode())
}

// reject rejects the use of a valid code. Only the first time is in the audit, so
// that repetitions cannot fill it.
func reject(q *store.Queries, a models.Authorization, c applicant, why error) error {
	first, err := q.RefuseAuthorization(a.ID, q.Now())
	if err != nil {
		return err
	}
	if first {
		attempt := map[string]any{"address": c.address, "name": c.Name, "gpu_code": c.gpuCode, "reason": why.Error()}
		if err := enrollment.Audit(q, policies.Change{Action: "refuse", Object: "authorization", ID: a.ID, After: attempt}); err != nil {
			return err
		}
	}
	return committedRefusal{why}
}
