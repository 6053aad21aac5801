package pool

import (
	"context"
	"time"

	"weir/models"
	"weir/policies"
	"weir/pool/authority"
)

// Beat hears an agent: who shows a certificate, from an address. It takes the
// token of the last answer, or of the one before when that answer was never
// used, so it was lost, and gives a new one. Any other token means that two
// agents use one key: the agent is shut out at once, and both with it.
//
// A request that was held up on the way and arrives after newer ones has an
// old token too, though only one agent exists. So who has a wrong token is
// first told to confirm, which a request that nobody waits for any more cannot
// do: the answer has Confirm and nothing else.
func (e *Enrolment) Beat(ctx context.Context, who authority.Holder, b Beat, address string) (o Orders, err error) {
	if err := checkBeat(b); err != nil {
		return o, err
	}
	err = e.inTx(ctx, func(q *models.Queries) error {
		o, err = e.beat(q, who, b, address)
		return err
	})
	if err != nil {
		return Orders{}, err
	}
	models.Failpoint("beat.committed")
	return o, nil
}

func (e *Enrolment) beat(q *models.Queries, who authority.Holder, b Beat, address string) (o Orders, err error) {
	agent, err := e.admit(q, who)
	if err != nil {
		return o, err
	}
	provider, err := q.Provider(agent.ProviderID)
	if err != nil {
		return o, err
	}
	shown := policies.HashSecret(b.Token)
	if shown != agent.TokenHash && (shown != agent.PreviousHash || b.Token == "") {
		if b.Confirm != agent.TokenHash {
			return Orders{Confirm: agent.TokenHash}, nil
		}
		return o, e.fence(q, &provider, address)
	}
	token := policies.NewSecret()
	agent.PreviousHash, agent.TokenHash = shown, policies.HashSecret(token)
	if err := q.UpdateAgent(&agent); err != nil {
		return o, err
	}
	if err := reported(q, &provider, b, address); err != nil {
		return o, err
	}
	if o, err = e.Pool.take(q, &provider, b); err != nil {
		return o, err
	}
	o.Token, o.Every, o.Renew = token, e.Every, due(who, q.Now())
	return o, explainPending(q, &provider, &o)
}

// admit finds the live agent that shows a certificate. The first use of a
// renewed one ends the older.
func (e *Enrolment) admit(q *models.Queries, who authority.Holder) (models.Agent, error) {
	agent, err := q.AgentBySerial(who.Serial)
	switch {
	case models.KindOf(err) == models.KindNotFound && err != nil:
		return agent, models.Forbidden("This agent is not known here. Enrol it with an authorization code.")
	case err != nil:
		return agent, err
	case agent.RevokedAt != nil:
		return agent, models.Forbidden("This agent was shut out: %s. Enrol it again with an authorization code.", agent.RevokedWhy)
	case !q.Now().Before(who.Expires):
		return agent, &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("The agent's certificate has expired. Enrol it again with an authorization code.")}
	}
	if who.Serial == agent.NextSerial {
		agent.Serial, agent.KeyHash, agent.IssuedAt, agent.ExpiresAt = agent.NextSerial, agent.NextKeyHash, who.Issued, who.Expires
		agent.NextSerial, agent.NextKeyHash = "", ""
		return agent, q.UpdateAgent(&agent)
	}
	return agent, nil
}

// due tells whether two thirds of a certificate's life are over.
func due(who authority.Holder, now time.Time) bool {
	return now.Sub(who.Issued) >= who.Expires.Sub(who.Issued)*2/3
}

// fence shuts out an agent of whose key there is a copy.
func (e *Enrolment) fence(q *models.Queries, provider *models.Provider, address string) error {
	why := models.Say("two agents used one key; one of the two machines or its state directory is a copy of the other")
	if err := q.RevokeAgents(provider.ID, q.Now(), why); err != nil {
		return err
	}
	before := *provider
	if err := e.Pool.lose(q, provider, why); err != nil {
		return err
	}
	if err := enrolment.Audit(q, policies.Change{Action: "fence", Object: "agent", ID: provider.ID,
		Before: map[string]any{"address": before.Address}, After: map[string]any{"address": address, "reason": why.String()}}); err != nil {
		return err
	}
	return kept{models.Forbidden("This agent was shut out: %s. Enrol it again with an authorization code.", why)}
}

// reported notes from where an agent speaks, and when its GPUs are not those
// that were authorised.
func reported(q *models.Queries, provider *models.Provider, b Beat, address string) error {
	code := GPUCodeOf(provider.Machine, b.Devices)
	if b.GPUCode != code {
		return models.Invalid("gpu_code", "is not the code of the reported GPUs, which is %s", code)
	}
	if code == provider.GPUCode {
		code = ""
	}
	if code == provider.ReportedCode && address == provider.Address {
		return nil
	}
	provider.ReportedCode, provider.Address = code, address
	return q.UpdateProvider(provider)
}

// explainPending words why a provider whose GPUs have changed lends nothing.
func explainPending(q *models.Queries, provider *models.Provider, o *Orders) error {
	if provider.State != models.ProviderPending {
		return nil
	}
	why := models.Say("its GPUs have changed: the GPU code %s waits for an authorization", provider.ReportedCode)
	o.Reason = why.String()
	if provider.Reason.String() == o.Reason {
		return nil
	}
	provider.Reason = why
	return q.MoveProvider(provider, provider.State)
}

// Renewal asks for a certificate for a new key.
type Renewal struct {
	CSR string `json:"csr"` // PEM
}

// Renewed is the answer.
type Renewed struct {
	Certificate string `json:"certificate"` // PEM
}

// Renew gives an agent a certificate for a new key. Its present one stays
// good until the new one is used.
func (e *Enrolment) Renew(ctx context.Context, who authority.Holder, csr string) (certificate string, err error) {
	r, err := authority.CheckRequest([]byte(csr))
	if err != nil {
		return "", models.Invalid("csr", "cannot be accepted: %s", err.Error())
	}
	err = e.inTx(ctx, func(q *models.Queries) error {
		agent, err := e.admit(q, who)
		if err != nil {
			return err
		}
		if r.KeyHash == agent.KeyHash {
			return models.Invalid("csr", "must be for a new key")
		}
		cert, err := e.Authority.Issue(r, agent.ID, e.CertificateLifetime)
		if err != nil {
			return err
		}
		certificate, agent.NextSerial, agent.NextKeyHash = string(cert.PEM), cert.Serial, cert.KeyHash
		return q.UpdateAgent(&agent)
	})
	return certificate, err
}
