package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"weir/cmd/weir/config"
	"weir/models/store"
)

const sqliteScheme = "sqlite:"

func newMigrateCopyCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "copy",
		Short: "Copy the database of a data directory (SQLite) to an empty PostgreSQL database",
		Long: `Copy the database of a data directory (SQLite) to an empty PostgreSQL database.

No server may use the data directory or the target. Both databases must have the
schema of this program: see “weir migrate”. The copy is one transaction: after an
error the target is as before. The data directory is not changed, and a server on
the target still needs its other files.`,
		Example: `  weir migrate --database-url "$URL"
  weir migrate copy --from sqlite:/var/lib/weir --to "$URL"`,
		Args: cobra.NoArgs,
	}
	from := cmd.Flags().String("from", "", "`SOURCE`, sqlite:DIR with the data directory")
	to := cmd.Flags().String("to", "", "`URL` of the target, postgres://… (default: WEIR_DATABASE_URL in the environment)")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		dir, ok := strings.CutPrefix(*from, sqliteScheme)
		if !ok || dir == "" {
			return config.Usagef("--from: must be sqlite:DIR, with the data directory of the server")
		}
		if *to == "" {
			*to = os.Getenv("WEIR_DATABASE_URL")
		}
		if !strings.HasPrefix(*to, "postgres://") {
			return config.Usagef("--to: must be the URL of a PostgreSQL database, such as postgres://user:password@host:5432/name")
		}
		rows, err := copyDatabase(cmd.Context(), config.Config{DataDir: dir}, config.Config{DatabaseURL: *to})
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "copied %d rows; all counts and the audit log are verified\n", rows)
		}
		return err
	}
	return cmd
}

// copyDatabase copies the database of one configuration to that of another and returns
// the number of rows.
func copyDatabase(ctx context.Context, from, to config.Config) (rows int64, err error) {
	source, closeSource, err := claimToCopy(ctx, from)
	if err != nil {
		return 0, fmt.Errorf("source: %w", err)
	}
	defer closeSource()
	target, closeTarget, err := claimToCopy(ctx, to)
	if err != nil {
		return 0, fmt.Errorf("target: %w", err)
	}
	defer closeTarget()
	return target.CopyFrom(ctx, source)
}

// claimToCopy opens an existing database with the schema of this program and keeps
// servers from using it until release.
func claimToCopy(ctx context.Context, cfg config.Config) (store *store.Store, release func(), err error) {
	store, err = openToRead(ctx, cfg)
	if err != nil {
		return nil, nil, err
	}
	claim, err := claimExclusively(ctx, cfg, store)
	if err != nil {
		store.Close()
		return nil, nil, err
	}
	return store, func() { claim(); store.Close() }, nil
}
