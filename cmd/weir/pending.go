package main

import (
	"os"

	"github.com/spf13/cobra"
)

func newServeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "serve", Short: "Serve the portal", Args: cobra.NoArgs}
	bindConfig(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return pending(cmd) }
	return cmd
}

func newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "migrate", Short: "Migrate the database", Args: cobra.NoArgs}
	bindConfig(cmd, storeOptions...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return pending(cmd) }
	return cmd
}

func newAdminCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "admin", Short: "Administer Weir", Args: cobra.NoArgs}
	bindConfig(cmd, storeOptions...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return pending(cmd) }
	return cmd
}

func pending(cmd *cobra.Command) error {
	_, err := loadConfig(cmd, os.LookupEnv)
	return err
}
