package main

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/pool/providers"
	"weir/workspaces/kube"
)

// projectQuota is the quota of a project's namespace in the cluster.
func (p *portal) projectQuota(ctx context.Context, project int64) (kube.Quota, error) {
	found, err := p.store.Read(ctx).Project(store.AllProjects, project)
	q := found.Quota
	return kube.Quota{CPU: bounded(q.CPUMilli), Memory: bounded(q.MemoryMiB), GPUCores: q.GPUCores}, err
}

// bounded is an amount, or 0, which does not limit a namespace, if it is unlimited.
func bounded(n int64) int64 {
	if models.IsUnlimited(n) {
		return 0
	}
	return n
}

const advertisePeriod = 5 * time.Second

// advertise regularly reports the GPU cores of the nodes to the cluster.
func (p *portal) advertise(ctx context.Context) {
	tick := time.NewTicker(advertisePeriod)
	defer tick.Stop()
	for {
		cores, err := p.pool.ProviderCores(ctx)
		if err == nil {
			_, err = p.cluster.Advertise(ctx, cores)
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("cannot advertise GPU cores to the cluster", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// reachable returns a filter of the providers on which workspaces can run; nil:
// only this machine.
func (p *portal) reachable() func(models.Provider) bool {
	if p.cluster == nil {
		return nil
	}
	return func(provider models.Provider) bool { return p.cluster.AcceptsPods(provider.Name) }
}

// nodeIdentity authenticates the pods of one service account by the cluster.
type nodeIdentity struct {
	runtime *kube.Runtime
	account string
}

func (v nodeIdentity) NodeOf(ctx context.Context, token string) (string, error) {
	return v.runtime.NodeOf(ctx, v.account, token)
}

// nodeIdentities authenticates nodes; nil when it is not configured.
func (p *portal) nodeIdentities() providers.Cluster {
	if p.cfg.KubeAgents == "" {
		return nil
	}
	return nodeIdentity{p.cluster, p.cfg.KubeAgents}
}
