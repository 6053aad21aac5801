package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models"
	"weir/policies"
	"weir/workspaces"
)

func newGenerationCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "new-generation", Args: cobra.NoArgs,
		Short: "Make a database that was copied by another program a generation of its own",
		Long: `Make a database that was copied by another program a generation of its own.

A copy that was made by pg_restore, or from a snapshot of a disk, is of the same
generation as the original: their servers would stop and take over each other's
workspaces. Run this on the copy before its first server is started. It does to the
database what “weir admin restore” does.`,
		Example: `  weir admin new-generation --database-url "$URL"`}
	config.AddFlags(cmd, config.ForStore...)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		in, ended, err := separateCopy(cmd.Context(), cfg)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "generation %d of installation %s\nended %d workspaces, %d runs and %d deployments, and all sessions\n",
				in.Generation, in.UID, ended.Workspaces, ended.Runs, ended.Deployments)
		}
		return err
	}
	return cmd
}

// separateCopy makes the database of a configuration a generation of its own.
func separateCopy(ctx context.Context, cfg config.Config) (in models.Installation, ended workspaces.Ended, err error) {
	db, err := openToRead(ctx, cfg)
	if err != nil {
		return in, ended, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	release, err := claimExclusively(ctx, cfg, db)
	if err != nil {
		return in, ended, err
	}
	defer release()
	ctx = policies.WithOrigin(ctx, policies.Origin{Via: policies.ViaCommand})
	return workspaces.StartGeneration(ctx, db, db.Now(), models.Say("The database is a copy of another one."))
}
