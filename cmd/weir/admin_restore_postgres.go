package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"weir/cmd/weir/archive"
	"weir/models/store"
)

// toPostgres copies the prepared database in dir to PostgreSQL, and moves the files beside it
// to the data directory.
func (r *restore) toPostgres(ctx context.Context, dir string) (err error) {
	target, err := store.Open(ctx, r.cfg.DatabaseURL, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	claim, err := target.LockDatabase(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, claim.Close()) }()
	current, newest, err := schemaVersions(ctx, target)
	switch {
	case err != nil:
		return err
	case current == 0:
		if err := migrateUp(ctx, target); err != nil {
			return errors.Join(err, migrateDown(context.WithoutCancel(ctx), target, 0))
		}
	case current != newest:
		return fmt.Errorf("the target database is not empty: it has version %d of the schema", current)
	}
	if err := r.fill(ctx, target, dir); err != nil {
		if current == 0 {
			err = errors.Join(err, migrateDown(context.WithoutCancel(ctx), target, 0))
		}
		return err
	}
	return nil
}

// fill moves the files, and then copies the database: without it, nothing is there.
func (r *restore) fill(ctx context.Context, target *store.Store, dir string) (err error) {
	source, err := store.Open(ctx, "", filepath.Join(dir, databaseName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := moveInto(r.cfg.DataDir, dir); err != nil {
		return err
	}
	if _, err = target.CopyFrom(ctx, source); err == nil {
		return nil
	}
	for _, name := range []string{authorityName, settingsDir, archive.SharedDir} {
		err = errors.Join(err, os.RemoveAll(filepath.Join(r.cfg.DataDir, name)))
	}
	return err
}
