package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"weir/cmd/weir/config"
	"weir/migrations"
	"weir/models/store"
)

// openStore opens the database. A new one gets its schema; another one is not migrated: a server
// of an earlier version may use it.
func openStore(ctx context.Context, cfg config.Config) (*store.Store, error) {
	return openDatabase(ctx, cfg, true)
}

// openToRead opens an existing database without migrating it: a server may use
// it.
func openToRead(ctx context.Context, cfg config.Config) (*store.Store, error) {
	if cfg.DatabaseURL == "" {
		if _, err := os.Stat(cfg.SQLiteFile()); err != nil {
			return nil, fmt.Errorf("no database found; set --data-dir or --database-url to those of the server: %w", err)
		}
	}
	return openDatabase(ctx, cfg, false)
}

func openDatabase(ctx context.Context, cfg config.Config, create bool) (*store.Store, error) {
	store, err := store.Open(ctx, cfg.DatabaseURL, cfg.SQLiteFile())
	if err != nil {
		return nil, err
	}
	current, newest, err := schemaVersions(ctx, store)
	switch {
	case err != nil:
	case create && current == 0:
		err = migrateUp(ctx, store)
	case current != newest:
		err = fmt.Errorf("the database schema has version %d, this program needs %d: use the program of the server, or run “weir migrate”",
			current, newest)
	}
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// schemaVersions returns the version of the database's schema and the newest
// version of this program.
func schemaVersions(ctx context.Context, store *store.Store) (current, newest int64, err error) {
	db, err := store.SQL()
	if err != nil {
		return 0, 0, err
	}
	return migrations.Versions(ctx, db, store.Dialect())
}

func migrateUp(ctx context.Context, store *store.Store) error {
	db, err := store.SQL()
	if err == nil {
		err = migrations.Up(ctx, db, store.Dialect())
	}
	if err == nil {
		err = store.ChainAudit(ctx)
	}
	if err != nil {
		err = fmt.Errorf("cannot migrate the database schema: %w", err)
	}
	return err
}

func migrateDown(ctx context.Context, store *store.Store, version int64) error {
	db, err := store.SQL()
	if err != nil {
		return err
	}
	return migrations.DownTo(ctx, db, store.Dialect(), version)
}
