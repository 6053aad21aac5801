package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models/store"
)

func newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Migrate the database schema to the newest version, or back to an older one",
		Args:  cobra.NoArgs,
	}
	config.AddFlags(cmd, config.ForStore...)
	to := cmd.Flags().Int64("down-to", -1, "version to migrate back to; 0 removes all data")
	cmd.AddCommand(newMigrateCopyCommand())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		store, err := store.Open(cmd.Context(), cfg.DatabaseURL, cfg.SQLiteFile())
		if err != nil {
			return err
		}
		defer store.Close()
		claim, err := claimExclusively(cmd.Context(), cfg, store)
		if err != nil {
			return err
		}
		defer claim()
		if *to >= 0 {
			err = migrateDown(cmd.Context(), store, *to)
		} else {
			err = migrateUp(cmd.Context(), store)
		}
		if err != nil {
			return err
		}
		current, newest, err := schemaVersions(cmd.Context(), store)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "%s schema: version %d of %d\n", store.Dialect(), current, newest)
		}
		return err
	}
	return cmd
}
