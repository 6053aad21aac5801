package providers

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/authority"
)

// Heartbeat processes the heartbeat of an agent with a verified certificate. The
// heartbeat must have the token of the last response, or of the one before if the
// last response was lost; the response has a new token. Any other token means
// that two agents use the same key, and both are fenced.
//
// A delayed request that arrives after newer ones has an old token too. Therefore
// the response to a wrong token has only Confirm, and the agent repeats the
// heartbeat with it, which a delayed request cannot do.
func (e *Enrollment) Heartbeat(ctx context.Context, peer authority.Peer, b Heartbeat, address string) (o Orders, err error) {
	if err := checkHeartbeat(b); err != nil {
		return o, err
	}
	if err := e.Authenticate(ctx, peer); err != nil {
		return o, err
	}
	shown := credential{peer, b.Token, b.Confirm, address}
	var provider int64
	err = e.inTx(ctx, func(q *store.Queries) error {
		o, provider, err = e.heartbeat(q, shown, b)
		return err
	})
	if err == nil && o.Confirm == "" {
		o.Probes = probes(e.Zones)
		err = saveMeasurements(ctx, e.Store, provider, b, e.Zones)
	}
	if err != nil {
		return Orders{}, err
	}
	models.Failpoint("beat.committed")
	return o, nil
}

// credential is what a request proves its agent with.
type credential struct {
	authority.Peer
	token, confirm, address string
}

func (e *Enrollment) heartbeat(q *store.Queries, c credential, b Heartbeat) (o Orders, id int64, err error) {
	agent, provider, confirm, err := e.authenticate(q, c)
	if err != nil || confirm != "" {
		return Orders{Confirm: confirm}, 0, err
	}
	token := policies.NewSecret()
	agent.PreviousHash, agent.TokenHash = policies.HashSecret(b.Token), policies.HashSecret(token)
	if err := q.UpdateAgent(&agent); err != nil {
		return o, 0, err
	}
	if err := recordOrigin(q, &provider, b, c.address); err != nil {
		return o, 0, err
	}
	o, err = apply(q, &provider, b)
	o.Token, o.Every, o.Renew = token, e.Every, renewalDue(c.Peer, q.Now())
	return o, provider.ID, err
}

// authenticate finds the agent of a request, and its provider. An agent with an old token
// or certificate must confirm, and is fenced when it does. The first use of a
// renewed certificate invalidates the old one; the caller updates the agent.
func (e *Enrollment) authenticate(q *store.Queries, c credential) (
	agent models.Agent, provider models.Provider, confirm string, err error) {
	if agent, err = e.activeAgent(q, c.Peer); err != nil {
		return agent, provider, "", err
	}
	if provider, err = q.Provider(agent.ProviderID); err != nil {
		return agent, provider, "", err
	}
	shown := policies.HashSecret(c.token)
	next := shown == agent.TokenHash || shown == agent.PreviousHash && c.token != ""
	switch {
	case next && c.Serial == agent.NextSerial:
		agent.LastSerial, agent.Serial, agent.KeyHash = agent.Serial, agent.NextSerial, agent.NextKeyHash
		agent.IssuedAt, agent.ExpiresAt, agent.NextSerial, agent.NextKeyHash = c.Issued, c.Expires, "", ""
		return agent, provider, "", nil
	case next && c.Serial == agent.Serial:
		return agent, provider, "", nil
	case c.confirm != agent.TokenHash:
		return agent, provider, agent.TokenHash, nil
	}
	return agent, provider, "", e.fence(q, &provider, c.address)
}

// Authenticate returns an error unless the certificate is that of an active agent. It
// takes no locks.
func (e *Enrollment) Authenticate(ctx context.Context, peer authority.Peer) error {
	_, err := e.activeAgent(e.Store.Read(ctx), peer)
	return err
}

// activeAgent finds the active agent with a certificate.
func (e *Enrollment) activeAgent(q *store.Queries, peer authority.Peer) (models.Agent, error) {
	agent, err := q.AgentBySerial(peer.Serial)
	switch {
	case models.KindOf(err) == models.KindNotFound:
		return agent, models.Forbidden("This agent is not enrolled. Enroll it with an authorization code.")
	case err != nil:
		return agent, err
	case agent.RevokedAt != nil:
		return agent, models.Forbidden("This agent is no longer authorized: %s. Enroll it again with an authorization code.", agent.RevokedWhy)
	case !q.Now().Before(peer.Expires):
		return agent, &models.Error{Kind: models.KindUnauthenticated,
			Message: models.Say("The agent's certificate has expired. Enroll it again with an authorization code.")}
	}
	return agent, nil
}

// renewalDue reports whether a third of a certificate's lifetime is over: two thirds are left for an agent or a
// portal that is away.
func renewalDue(peer authority.Peer, now time.Time) bool {
	return now.Sub(peer.Issued) >= peer.Expires.Sub(peer.Issued)/3
}

// fence revokes an agent whose key was copied.
func (e *Enrollment) fence(q *store.Queries, provider *models.Provider, address string) error {
	why := models.Say("two agents used the same key; one machine or its state directory is a copy of the other")
	if err := q.RevokeAgents(provider.ID, q.Now(), why, false); err != nil {
		return err
	}
	before := *provider
	if err := markLost(q, provider, why); err != nil {
		return err
	}
	if err := enrollment.Audit(q, policies.Change{Action: "fence", Object: "agent", ID: provider.ID,
		Before: map[string]any{"address": before.Address}, After: map[string]any{"address": address, "reason": why.String()}}); err != nil {
		return err
	}
	return committedRefusal{models.Forbidden("This agent is no longer authorized: %s. Enroll it again with an authorization code.", why)}
}

// recordOrigin records the address of an agent, and the code of its GPUs if they
// are not the authorized ones.
func recordOrigin(q *store.Queries, provider *models.Provider, b Heartbeat, address string) error {
	code := GPUCodeOf(provider.Machine, b.Devices)
	if b.GPUCode != code {
		return models.Invalid("gpu_code", "does not match the code of the reported GPUs, %s", code)
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

// Renew issues a certificate for a new key. The current one stays valid until the
// new one is used. It requires the token like a heartbeat.
func (e *Enrollment) Renew(ctx context.Context, peer authority.Peer, in Renewal, address string) (out Renewed, err error) {
	r, err := authority.CheckRequest([]byte(in.CSR))
	if err != nil {
		return out, models.Invalid("csr", "cannot be accepted: %s", err.Error())
	}
	if err := e.Authenticate(ctx, peer); err != nil {
		return out, err
	}
	err = e.inTx(ctx, func(q *store.Queries) error {
		out, err = e.renew(q, credential{peer, in.Token, in.Confirm, address}, r)
		return err
	})
	if err != nil {
		return Renewed{}, err
	}
	return out, nil
}

func (e *Enrollment) renew(q *store.Queries, c credential, r authority.Request) (Renewed, error) {
	agent, provider, confirm, err := e.authenticate(q, c)
	if err != nil || confirm != "" {
		return Renewed{Confirm: confirm}, err
	}
	if r.KeyHash == agent.KeyHash {
		return Renewed{}, models.Invalid("csr", "must be for a new key")
	}
	cert, err := e.Authority.Issue(r, agent.ID, e.CertificateLifetime)
	if err != nil {
		return Renewed{}, err
	}
	agent.NextSerial, agent.NextKeyHash = cert.Serial, cert.KeyHash
	if err := q.UpdateAgent(&agent); err != nil {
		return Renewed{}, err
	}
	return Renewed{Certificate: string(cert.PEM)}, enrollment.Audit(q, policies.Change{Action: "renew", Object: "agent", ID: provider.ID,
		After: map[string]any{"address": c.address, "serial": cert.Serial, "expires_at": cert.Expires}})
}
