package pool

import (
	"context"

	"weir/models"
	"weir/policies"
	"weir/pool/authority"
)

// Redemption is how an agent enrols: by a code, for a key of its own, with
// what its machine is and has.
type Redemption struct {
	Code    string         `json:"code"`
	CSR     string         `json:"csr"`     // PEM
	Name    string         `json:"name"`    // what the machine calls itself
	Machine string         `json:"machine"` // see MachineDigest
	Devices []DeviceReport `json:"devices"`
}

// Enrolled is what an agent gets.
type Enrolled struct {
	Provider    string `json:"provider"` // the name
	State       string `json:"state"`
	Certificate string `json:"certificate"` // PEM
	Authority   string `json:"authority"`   // PEM
	Token       string `json:"token"`       // of the first beat

	Machine string `json:"machine,omitempty"` // the digest by which the portal knows the machine, where it is not the agent's
}

// claim is a redemption as far as it can be checked without the database.
type claim struct {
	Redemption
	hash    string
	gpuCode string
	request authority.Request
	address string
}

func (e *Enrolment) check(r Redemption, address string) (claim, error) {
	c := claim{Redemption: r, address: address}
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

func checkMachine(digest string, devices []DeviceReport, p *models.Problems) {
	if !isDigest(digest) {
		p.Add("machine", "must be the digest of the machine's identity, 64 hexadecimal digits")
	}
	checkReports(devices, p)
}

// Redeem enrols an agent. In one transaction the code is used up, an older
// agent of the machine is shut out, and the machine's GPUs enter the pool. An
// agent that did not get the answer may ask again with the same key as long as
// the code is good; another key is refused.
func (e *Enrolment) Redeem(ctx context.Context, r Redemption, address string) (out Enrolled, err error) {
	c, err := e.check(r, address)
	if err != nil {
		return out, err
	}
	// Anybody may ask, so a code that is none must not cost the pool's lock.
	if _, err := goodCode(e.store.Read(ctx), c.hash); err != nil {
		return out, err
	}
	err = e.inTx(ctx, func(q *models.Queries) error {
		out, err = e.redeem(q, c)
		return err
	})
	if err != nil {
		return Enrolled{}, err
	}
	models.Failpoint("redeem.committed")
	return out, nil
}

func (e *Enrolment) redeem(q *models.Queries, c claim) (out Enrolled, err error) {
	a, err := goodCode(q, c.hash)
	switch {
	case err != nil:
		return out, err
	case a.GPUCode != c.gpuCode:
		return out, turnAway(q, a, c, models.Invalid("code", "is for the GPU code %s, and this machine has %s", a.GPUCode, c.gpuCode))
	case a.RedeemedAt != nil:
		return e.again(q, a, c)
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
	return e.letIn(q, entry{claim: c, actor: enrolment, before: before, provider: provider, by: &a})
}

// entry is a claim that was accepted.
type entry struct {
	claim
	actor    policies.Actor
	before   *models.Provider // nil: it is new
	provider models.Provider
	by       *models.Authorization // nil: the cluster's word was enough
}

// letIn makes the agent that speaks for a provider from now on, and brings the
// machine's GPUs into the pool.
func (e *Enrolment) letIn(q *models.Queries, in entry) (out Enrolled, err error) {
	agent, err := replaceAgent(q, in)
	if err != nil {
		return out, err
	}
	if err := e.Pool.hear(q, &in.provider); err != nil {
		return out, err
	}
	foreign, err := e.Pool.enlist(q, &in.provider, in.Devices)
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
	return e.equip(q, in.provider, &agent, in.request)
}

// replaceAgent makes an agent in the place of the provider's older one. Its
// serial number is still to come: it is the certificate's, which names the
// row's id.
func replaceAgent(q *models.Queries, in entry) (agent models.Agent, err error) {
	id := in.provider.ID
	if err := q.RevokeAgents(id, q.Now(), models.Say("another agent was enrolled for the machine")); err != nil {
		return agent, err
	}
	agent = models.Agent{ProviderID: id, KeyHash: in.request.KeyHash, Serial: in.hash, IssuedAt: q.Now(), ExpiresAt: q.Now(), CreatedAt: q.Now()}
	if err := q.CreateAgent(&agent); err != nil || in.by == nil {
		return agent, err
	}
	return agent, q.SetAuthorizationAgent(in.by.ID, agent.ID)
}

// goodCode finds the authorization of a code whose time is not over.
func goodCode(q *models.Queries, hash string) (models.Authorization, error) {
	a, err := q.AuthorizationByHash(hash)
	switch {
	case err != nil && absentIsFine(err) == nil:
		return a, models.Invalid("code", "is not known here")
	case err != nil || q.Now().Before(a.ExpiresAt):
		return a, err
	case a.RedeemedAt != nil:
		return a, usedCode()
	}
	return a, models.Invalid("code", "has expired: it was good for %d minutes; ask an administrator for another", int64(codeLife.Minutes()))
}

func usedCode() error {
	return models.Conflict("This authorization code was used already. Ask an administrator for another.")
}

// enrolment is who acts when an agent does.
var enrolment = policies.System("enrolment")

// providerFor finds the provider that a machine is, or makes it, as an
// authorization says. One that has an owner keeps it, unless the authorization
// names another. before is nil when it was made.
func providerFor(q *models.Queries, a models.Authorization, c claim) (before *models.Provider, p models.Provider, err error) {
	if p, err = q.ProviderOf(c.Machine); err == nil {
		was := p
		before = &was
	} else {
		if absentIsFine(err) != nil {
			return nil, p, err
		}
		name := a.Name
		if name == "" {
			name = c.Name
		}
		if p, err = newProvider(q, name, c.Machine); err != nil {
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

// equip gives an agent a certificate and the first token.
func (e *Enrolment) equip(q *models.Queries, provider models.Provider, agent *models.Agent, r authority.Request) (out Enrolled, err error) {
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

// again answers to a code that was used. The agent that used it may not have
// got the answer: it has the same key, and has not spoken since.
func (e *Enrolment) again(q *models.Queries, a models.Authorization, c claim) (Enrolled, error) {
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
			return e.equip(q, provider, &agent, c.request)
		}
	}
	return Enrolled{}, turnAway(q, a, c, usedCode())
}

// turnAway refuses the use of a good code. The first time is in the audit; who
// has the code cannot fill it.
func turnAway(q *models.Queries, a models.Authorization, c claim, why error) error {
	first, err := q.RefuseAuthorization(a.ID, q.Now())
	if err != nil {
		return err
	}
	if first {
		attempt := map[string]any{"address": c.address, "name": c.Name, "gpu_code": c.gpuCode, "reason": why.Error()}
		if err := enrolment.Audit(q, policies.Change{Action: "refuse", Object: "authorization", ID: a.ID, After: attempt}); err != nil {
			return err
		}
	}
	return kept{why}
}
