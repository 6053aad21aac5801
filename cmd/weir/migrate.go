package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/migrations"
	"weir/models"
)

func newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date, or back to an older version",
		Args:  cobra.NoArgs,
	}
	config.Bind(cmd, config.ForStore...)
	to := cmd.Flags().Int64("down-to", -1, "go back to this version; 0 removes all data")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		store, err := models.Open(cmd.Context(), cfg.DatabaseURL, cfg.SQLiteFile())
		if err != nil {
			return err
		}
		defer store.Close()
		claim, err := claimData(cmd.Context(), cfg, store)
		if err != nil {
			return err
		}
		defer claim()
		db, err := store.SQL()
		if err != nil {
			return err
		}
		if *to >= 0 {
			err = migrations.DownTo(cmd.Context(), db, store.Dialect(), *to)
		} else {
			err = migrateUp(cmd.Context(), store)
		}
		if err != nil {
			return err
		}
		current, newest, err := migrations.Versions(cmd.Context(), db, store.Dialect())
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s schema: version %d of %d\n", store.Dialect(), current, newest)
		}
		return err
	}
	return cmd
}

// claimData makes sure that no server works on the data, until release.
func claimData(ctx context.Context, cfg config.Config, store *models.Store) (release func(), err error) {
	alone, err := store.Alone(ctx)
	if err != nil {
		return nil, err
	}
	if store.Dialect() == "postgres" {
		return func() { _ = alone.Close() }, nil
	}
	lock, err := lockDir(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	return func() { _ = lock.Close() }, nil
}
