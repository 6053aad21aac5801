package main

import (
	"context"
	"path/filepath"
	"sync"
	"time"

	"weir/models"
	"weir/workspaces"
	"weir/workspaces/kube"
	"weir/workspaces/local"
)

// backend is what every mode's runtime has beside what workspaces need.
type backend interface {
	workspaces.Runtime
	Changed() <-chan struct{}
	Close() error
}

// openRuntime chooses where workspaces run.
func (p *portal) openRuntime(ctx context.Context) (backend, error) {
	if p.cfg.Runtime == "local" {
		r, err := local.New(local.Config{Dir: filepath.Join(p.cfg.DataDir, "run"), SandboxUID: uint32(p.cfg.SandboxUID),
			SandboxGID: uint32(p.cfg.SandboxUID), Logger: p.log, Clock: p.store.Clock, MPSDir: p.cfg.mpsDir(), Files: p.instanceFiles})
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
	p.cluster = &clusterNodes{runtime: r, unknown: map[string]bool{}}
	return r, nil
}

// projectQuota is what a project's namespace may take of the cluster.
func (p *portal) projectQuota(ctx context.Context, project int64) (kube.Quota, error) {
	found, err := p.store.Read(ctx).Project(models.Everything, project)
	q := found.Quota
	return kube.Quota{CPU: q.CPUMilli, Memory: q.MemoryMiB, GPUCores: q.GPUCores}, err
}

// clusterNodes joins the pool's providers and the cluster's nodes, by name.
type clusterNodes struct {
	runtime *kube.Runtime

	mu      sync.Mutex
	unknown map[string]bool // providers that are no nodes
}

const advertisePeriod = 5 * time.Second

// advertise tells the cluster, again and again, how many GPU cores its nodes
// have for the pool.
func (c *clusterNodes) advertise(ctx context.Context, p *portal) {
	tick := time.NewTicker(advertisePeriod)
	defer tick.Stop()
	for {
		if err := c.once(ctx, p); err != nil && ctx.Err() == nil {
			p.log.Warn("GPU cores are not told to the cluster", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (c *clusterNodes) once(ctx context.Context, p *portal) error {
	cores, err := p.pool.NodeCores(ctx)
	if err != nil {
		return err
	}
	unknown, err := c.runtime.Advertise(ctx, cores)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.unknown)
	for _, name := range unknown {
		c.unknown[name] = true
	}
	return nil
}

// isNode tells whether a provider is a node of the cluster, as far as known.
func (c *clusterNodes) isNode(p models.Provider) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.unknown[p.Name]
}

// wireReach lets the pool place where workspaces can run.
func (p *portal) wireReach() {
	if p.cluster != nil {
		p.pool.Reach(p.cluster.isNode)
	}
}
