package workspaces

import (
	"context"
	"log/slog"
	"time"

	"weir/models/store"
)

const (
	// countsPeriod is how often a server saves what it has counted. What it has counted since is lost if it is killed.
	countsPeriod = 5 * time.Second
	// countsTimeout is how long saving may take.
	countsTimeout = 5 * time.Second
	// countsKept is how long counts are kept that cannot be saved.
	countsKept = time.Hour
)

// KeepCounts saves what is counted of requests to deployments until ctx ends, and once more then: end it after the last
// request.
func (s *Service) KeepCounts(ctx context.Context, log *slog.Logger) {
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-time.After(countsPeriod):
		}
		saving, cancel := context.WithTimeout(context.WithoutCancel(ctx), countsTimeout)
		if err := s.SaveCounts(saving); err != nil {
			log.WarnContext(ctx, "cannot save what is counted of requests to deployments", "err", err)
		}
		cancel()
	}
}

// SaveCounts saves what this server has counted of requests to deployments. On an error it is kept for the next
// time, unless it is older than an hour; what was committed all the same counts twice.
func (s *Service) SaveCounts(ctx context.Context) error {
	taken, now := s.counts.take(), s.store.Now()
	prune := s.counts.pruneDue(now)
	if len(taken) == 0 && !prune {
		return nil
	}
	err := s.store.InTx(ctx, func(q *store.Queries) error {
		err := q.AddDeploymentCounts(storedCounts(taken))
		for step, kept := range stepsKept {
			if prune && kept > 0 && err == nil {
				err = q.PruneDeploymentCounts(step, now.Add(-kept))
			}
		}
		return err
	})
	if err == nil && prune {
		s.counts.setPruned(now)
	}
	for of, n := range taken {
		if err != nil && now.Sub(of.minute) < countsKept {
			s.counts.add(of, n)
		}
	}
	return err
}
