package providers

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/authority"
)

// maxToken bounds a service account's token, in bytes; typical ones have 1200.
const maxToken = 16 << 10

// nodeApplicant is the agent of a node. Its machine and code can be those of a
// provider that was enrolled with a code.
type nodeApplicant struct {
	applicant
	machine string
	code    string
}

// Join enrolls the agent of a cluster node with the token of its pod. The provider
// gets the node's name. Each call replaces the node's agent. A node whose GPUs
// have changed becomes pending. A node that an administrator has revoked or
// removed needs an authorization of its GPU code.
func (e *Enrollment) Join(ctx context.Context, j Joining, address string) (out Enrolled, err error) {
	if e.Cluster == nil {
		return out, &models.Error{Kind: models.KindNotFound,
			Message: models.Say("This portal does not accept enrollment through the cluster. Start it with --kube-agents, or enroll the machine with an authorization code.")}
	}
	n, err := checkJoining(j, address)
	if err != nil {
		return out, err
	}
	node, err := e.Cluster.NodeOf(ctx, j.Token)
	if err != nil {
		return out, err
	}
	var p models.Problems
	if n.Name = models.CheckName("node", node, &p); p.Err() != nil {
		return out, p.Err()
	}
	n.Machine = NodeDigest(node)
	n.gpuCode = GPUCodeOf(n.Machine, n.Devices)
	err = e.inTx(ctx, func(q *store.Queries) error {
		out, err = e.join(q, n)
		return err
	})
	if err != nil {
		return Enrolled{}, err
	}
	models.Failpoint("join.committed")
	out.Machine = n.Machine
	return out, nil
}

func checkJoining(j Joining, address string) (n nodeApplicant, err error) {
	var p models.Problems
	n.address, n.Devices, n.machine = address, j.Devices, j.Machine
	if j.Token == "" || len(j.Token) > maxToken {
		p.Add("token", "must be 1 to %d characters", int64(maxToken))
	}
	if n.request, err = authority.CheckRequest([]byte(j.CSR)); err != nil {
		p.Add("csr", "cannot be accepted: %s", err.Error())
	}
	checkMachine(j.Machine, j.Devices, &p)
	n.hash, n.code = n.request.KeyHash, GPUCodeOf(j.Machine, j.Devices)
	return n, p.Err()
}

// byCluster is the actor of enrollments of nodes.
var byCluster = policies.System("cluster")

func (e *Enrollment) join(q *store.Queries, n nodeApplicant) (out Enrolled, err error) {
	before, provider, err := e.nodeProvider(q, n)
	if err != nil {
		return out, err
	}
	given, err := useAuthorization(q, n, before)
	if err != nil {
		return out, err
	}
	provider.ReportedCode = n.gpuCode
	if provider.GPUCode == n.gpuCode || given != nil && given.GPUCode == n.gpuCode {
		provider.GPUCode, provider.ReportedCode = n.gpuCode, ""
	}
	if given != nil && given.OwnerGiven {
		provider.OwnerID = &given.OwnerID
	}
	provider.Agent, provider.Address = true, n.address
	if err := q.UpdateProvider(&provider); err != nil {
		return out, err
	}
	return e.admit(q, admission{applicant: n.applicant, actor: byCluster, before: before, provider: provider, by: given})
}

// nodeProvider finds or creates the provider of a node; before is nil for a new
// one. Another provider with the node's name becomes the node's only if it has
// the same machine and GPUs, or was removed from the pool.
func (e *Enrollment) nodeProvider(q *store.Queries, n nodeApplicant) (before *models.Provider, p models.Provider, err error) {
	found, err := q.ProviderByMachine(n.Machine)
	if err == nil {
		p = found
		return &found, p, rename(q, &p, n.Name)
	}
	if models.IgnoreNotFound(err) != nil {
		return nil, p, err
	}
	found, err = q.ProviderByName(n.Name)
	switch {
	case models.IgnoreNotFound(err) != nil:
		return nil, p, err
	case err != nil:
		if p, err = newProvider(q, n.Name, n.Machine); err != nil {
			return nil, p, err
		}
	case found.State != models.ProviderOffline && (found.Machine != n.machine || found.GPUCode != n.code):
		return nil, p, models.Conflict("The pool already has a machine named %s that cannot be matched to this node. Rename or remove that provider first.", n.Name)
	default:
		before, p = &found, found
		p.Machine = n.Machine
	}
	p.GPUCode = n.gpuCode
	if p.OwnerID == nil {
		p.OwnerID, err = e.nodeOwner(q)
	}
	return before, p, err
}

// nodeOwner is the owner of a new node's GPUs.
func (e *Enrollment) nodeOwner(q *store.Queries) (*int64, error) {
	if e.NodeOwner != "" {
		u, err := q.UserByEmail(e.NodeOwner)
		if models.KindOf(err) == models.KindNotFound || err == nil && u.Disabled {
			return nil, models.Conflict("The account %s, configured as the owner of the cluster's GPUs, does not exist or is disabled.", e.NodeOwner)
		}
		return &u.ID, err
	}
	page := store.Page{Limit: 200}
	for {
		users, err := q.Users("", page)
		if err != nil {
			return nil, err
		}
		for _, u := range users {
			if u.Admin && !u.Disabled {
				return &u.ID, nil
			}
		}
		if len(users) < page.Limit {
			return nil, models.Conflict("There is no platform administrator to own the node's GPUs yet. Set up the portal first.")
		}
		page.After = users[len(users)-1].ID
	}
}

// useAuthorization redeems an open authorization of a node, if there is one. A
// removed node needs one.
func useAuthorization(q *store.Queries, n nodeApplicant, before *models.Provider) (*models.Authorization, error) {
	removed, err := wasRemoved(q, n, before)
	if err != nil {
		return nil, err
	}
	open, err := q.OpenAuthorizations(q.Now())
	if err != nil {
		return nil, err
	}
	for _, a := range open {
		if a.GPUCode == n.gpuCode || removed && a.GPUCode == before.GPUCode {
			_, err := q.RedeemAuthorization(a.Hash, n.request.KeyHash, q.Now())
			return &a, err
		}
	}
	if removed {
		return nil, models.Forbidden("%s is no longer authorized. To admit it again, an administrator must authorize its GPU code %s. No action is needed on the machine.", n.Name, n.gpuCode)
	}
	return nil, nil
}

// wasRemoved reports whether an administrator has revoked or removed a node.
func wasRemoved(q *store.Queries, n nodeApplicant, before *models.Provider) (bool, error) {
	switch {
	case before == nil:
		return false, nil
	case before.State == models.ProviderOffline: // of another machine: it was replaced by the node
		return before.Machine == n.Machine, nil
	}
	last, err := q.AgentsOf(before.ID, 1)
	if err != nil || len(last) == 0 {
		return false, err
	}
	return last[0].RevokedAt != nil && last[0].RevokedByAdmin, nil
}
