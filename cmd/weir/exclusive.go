package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"weir/cmd/weir/config"
	"weir/models/store"
)

// lockDataDir locks dir for this process until it ends.
func lockDataDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another server uses the data directory %s", dir), f.Close())
	}
	return f, nil
}

// claimExclusively makes sure that no server uses the data, and keeps those without a cluster
// from using it until release.
func claimExclusively(ctx context.Context, cfg config.Config, store *store.Store) (release func(), err error) {
	claim, err := store.LockDatabase(ctx)
	if err != nil {
		return nil, err
	}
	if store.Dialect() == "postgres" {
		if err := store.CheckUnused(ctx); err != nil {
			return nil, errors.Join(err, claim.Close())
		}
		return func() { _ = claim.Close() }, nil
	}
	lock, err := lockDataDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}

// watchDatabaseLock ends the server when it has lost its exclusive claim on the
// database.
func (p *portal) watchDatabaseLock(ctx context.Context, failed chan<- error) {
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if p.databaseLock == nil {
			return
		}
		if err := p.databaseLock.Holds(ctx); err != nil && ctx.Err() == nil {
			failed <- fmt.Errorf("lost the exclusive claim on the database: %w", err)
			return
		}
	}
}
