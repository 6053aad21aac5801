package providers

import (
	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/authority"
)

// applicant is an agent that enrolls, after the checks without the database.
type applicant struct {
	Redemption
	hash    string
	gpuCode string
	request authority.Request
	address string
}

// admission is an accepted applicant.
type admission struct {
	applicant
	actor    policies.Actor
	before   *models.Provider // nil for a new provider
	provider models.Provider
	by       *models.Authorization // nil for a node without one
}

// admit creates the agent of a provider, and registers the machine's GPUs.
func (e *Enrollment) admit(q *store.Queries, in admission) (out Enrolled, err error) {
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

// replaceAgent revokes the provider's agents and creates a new one. Its serial
// number is set with the certificate, which contains the id of the row.
func replaceAgent(q *store.Queries, in admission) (agent models.Agent, err error) {
	id := in.provider.ID
	if err := q.RevokeAgents(id, q.Now(), models.Say("another agent was enrolled for this machine"), false); err != nil {
		return agent, err
	}
	agent = models.Agent{ProviderID: id, KeyHash: in.request.KeyHash, Serial: in.hash, IssuedAt: q.Now(), ExpiresAt: q.Now(),
		CreatedAt: q.Now()}
	if err := q.CreateAgent(&agent); err != nil || in.by == nil {
		return agent, err
	}
	return agent, q.SetAuthorizationAgent(in.by.ID, agent.ID)
}

// issueCertificate issues an agent's certificate and first token.
func (e *Enrollment) issueCertificate(q *store.Queries, provider models.Provider, agent *models.Agent, r authority.Request) (
	out Enrolled, err error) {
	cert, err := e.Authority.Issue(r, agent.ID, e.CertificateLifetime)
	if err != nil {
		return out, err
	}
	token := policies.NewSecret()
	agent.Serial, agent.IssuedAt, agent.ExpiresAt = cert.Serial, cert.Issued, cert.Expires
	agent.TokenHash, agent.PreviousHash = policies.HashSecret(token), ""
	out = Enrolled{Provider: provider.Name, State: provider.State, Certificate: string(cert.PEM), Authority: string(e.Authority.PEM()),
		Token: token}
	return out, q.UpdateAgent(agent)
}
