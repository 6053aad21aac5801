package providers

import (
	"weir/models"
	"weir/policies"
	"weir/pool/authority"
)

// applicant is an agent that asks to be let in, as far as it can be checked
// without the database.
type applicant struct {
	Redemption
	hash    string
	gpuCode string
	request authority.Request
	address string
}

// admission is an applicant who was accepted.
type admission struct {
	applicant
	actor    policies.Actor
	before   *models.Provider // nil: it is new
	provider models.Provider
	by       *models.Authorization // nil: the cluster's word was enough
}

// admit makes the agent that speaks for a provider from now on, and brings the
// machine's GPUs into the pool.
func (e *Enrolment) admit(q *models.Queries, in admission) (out Enrolled, err error) {
	agent, err := replaceAgent(q, in)
	if err != nil {
		return out, err
	}
	if err := markSeen(q, &in.provider); err != nil {
		return out, err
	}
	foreign, err := register(q, &in.provider, in.Devices)
	if err != nil {
		return out, err
	}
	if !foreign.Empty() {
		return out, &models.Error{Kind: models.KindConflict, Message: foreign}
	}
	change := policies.Change{Action: "enrol", Object: "provider", ID: in.provider.ID, After: in.provider}
	if in.before != nil {
		change.Before = *in.before
	}
	if err := in.actor.Audit(q, change); err != nil {
		return out, err
	}
	return e.issueCertificate(q, in.provider, &agent, in.request)
}

// replaceAgent makes an agent in the place of the provider's older one. Its
// serial number is still to come: it is the certificate's, which names the
// row's id.
func replaceAgent(q *models.Queries, in admission) (agent models.Agent, err error) {
	id := in.provider.ID
	if err := q.RevokeAgents(id, q.Now(), models.Say("another agent was enrolled for this machine"), false); err != nil {
		return agent, err
	}
	agent = models.Agent{ProviderID: id, KeyHash: in.request.KeyHash, Serial: in.hash, IssuedAt: q.Now(), ExpiresAt: q.Now(), CreatedAt: q.Now()}
	if err := q.CreateAgent(&agent); err != nil || in.by == nil {
		return agent, err
	}
	return agent, q.SetAuthorizationAgent(in.by.ID, agent.ID)
}

// issueCertificate gives an agent a certificate and the first token.
func (e *Enrolment) issueCertificate(q *models.Queries, provider models.Provider, agent *models.Agent, r authority.Request) (out Enrolled, err error) {
	cert, err := e.Authority.Issue(r, agent.ID, e.CertificateLifetime)
	if err != nil {
		return out, err
	}
	token := policies.NewSecret()
	agent.Serial, agent.IssuedAt, agent.ExpiresAt = cert.Serial, cert.Issued, cert.Expires
	agent.TokenHash, agent.PreviousHash = policies.HashSecret(token), ""
	out = Enrolled{Provider: provider.Name, State: provider.State, Certificate: string(cert.PEM), Authority: string(e.Authority.PEM()), Token: token}
	return out, q.UpdateAgent(agent)
}
