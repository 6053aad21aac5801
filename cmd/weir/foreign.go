package main

import (
	"context"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"weir/models"
	"weir/models/store"
	"weir/workspaces/local"
	"weir/workspaces/runtime"
)

// ownerOf is the owner of what a server of a database starts.
func ownerOf(ctx context.Context, s *store.Store) (runtime.Owner, error) {
	in, err := s.Read(ctx).Installation()
	return runtime.Owner{Installation: in.UID, Generation: in.Generation}, err
}

// runDirs are the directories of workspaces, runs and parts of deployments on this machine.
func (p *portal) runDirs() []string {
	var dirs []string
	for _, name := range []string{"run", "runs", "parts"} {
		dirs = append(dirs, filepath.Join(p.cfg.DataDir, name))
	}
	return dirs
}

// foreign finds what servers of other generations of this installation, or of copies of its
// data directory, have started on this machine or in the cluster. This server leaves it alone.
func (p *portal) foreign() ([]models.Foreign, error) {
	if p.cluster != nil {
		return p.cluster.Foreign()
	}
	dirs := p.runDirs()
	for i, dir := range dirs { // as they are in the marks of processes
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dirs[i] = real
		}
	}
	return local.Foreign(p.owner, dirs...)
}

// tellForeign writes to the log what foreign finds.
func (p *portal) tellForeign(ctx context.Context) {
	list, err := p.foreign()
	if err != nil {
		p.log.WarnContext(ctx, "cannot look for what other generations of this installation run", "err", err)
	}
	for _, f := range list {
		p.log.WarnContext(ctx, "another generation or copy of this installation runs workspaces here; they are left alone",
			"workspaces", f.Workspaces, "owner", f.Owner, "place", f.Place, "own", p.owner.String())
	}
}

// foreignGauge exports how much foreign finds.
type foreignGauge struct {
	find func() ([]models.Foreign, error)
}

var foreignDesc = prometheus.NewDesc("weir_foreign_workspaces",
	"Workspaces and runs that another generation, or a copy, of this installation runs here. They are left alone.", nil, nil)

// Describe implements prometheus.Collector.
func (g foreignGauge) Describe(ch chan<- *prometheus.Desc) { ch <- foreignDesc }

// Collect implements prometheus.Collector.
func (g foreignGauge) Collect(ch chan<- prometheus.Metric) {
	list, err := g.find()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(foreignDesc, err)
		return
	}
	n := 0
	for _, f := range list {
		n += f.Workspaces
	}
	ch <- prometheus.MustNewConstMetric(foreignDesc, prometheus.GaugeValue, float64(n))
}
