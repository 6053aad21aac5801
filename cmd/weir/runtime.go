package main

import (
	"context"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/kube"
	"weir/workspaces/local"
)

// backend is what every mode's runtime has beside what workspaces need.
type backend interface {
	workspaces.Runtime
	OnChange(listener func(workspace int64))
	Close() error
}

// openRuntime chooses where workspaces run.
func (p *portal) openRuntime(ctx context.Context) (backend, error) {
	if p.cfg.Runtime == "local" {
		r, err := local.New(local.Config{Dir: filepath.Join(p.cfg.DataDir, "run"), SandboxUID: uint32(p.cfg.SandboxUID),
			SandboxGID: uint32(p.cfg.SandboxUID), Logger: p.log, Clock: p.store.Clock, MPSDir: p.cfg.MPSDir(), Files: p.instanceFiles})
		if err != nil {
			return nil, err
		}
		return r, nil
	}
	c := p.cfg.Kube
	c.SharedRoot, c.UID, c.GID = p.cfg.SharedDir, int64(p.cfg.SandboxUID), int64(p.cfg.SandboxUID)
	c.Quota, c.Logger, c.Clock = p.projectQuota, p.log, p.store.Clock
	r, err := kube.New(ctx, c)
	if err != nil {
		return nil, err
	}
	p.cluster = r
	return r, nil
}

// projectQuota is what a project's namespace may take of the cluster.
func (p *portal) projectQuota(ctx context.Context, project int64) (kube.Quota, error) {
	found, err := p.store.Read(ctx).Project(models.Everything, project)
	q := found.Quota
	return kube.Quota{CPU: q.CPUMilli, Memory: q.MemoryMiB, GPUCores: q.GPUCores}, err
}

const advertisePeriod = 5 * time.Second

// advertise tells the cluster, again and again, how many GPU cores its nodes
// have for the pool.
func (p *portal) advertise(ctx context.Context) {
	tick := time.NewTicker(advertisePeriod)
	defer tick.Stop()
	for {
		cores, err := p.pool.NodeCores(ctx)
		if err == nil {
			_, err = p.cluster.Advertise(ctx, cores)
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("GPU cores are not told to the cluster", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// wireReach lets the pool place where workspaces can run.
func (p *portal) wireReach() {
	if p.cluster != nil {
		p.pool.Reach(func(provider models.Provider) bool { return p.cluster.HasNode(provider.Name) })
	}
}

// collectors are what this mode's runtime measures of itself.
func (p *portal) collectors() []prometheus.Collector {
	if c, ok := p.runtime.(prometheus.Collector); ok {
		return []prometheus.Collector{c}
	}
	return nil
}
