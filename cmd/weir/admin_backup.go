package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"weir/cmd/weir/archive"
	"weir/cmd/weir/config"
	"weir/models"
	"weir/models/store"
)

// Names in a backup, and in the data directory that it is restored to.
const (
	databaseName  = "weir.db"
	authorityName = "authority.pem"
	settingsDir   = "settings"
)

func newBackupCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "backup", Args: cobra.NoArgs,
		Short: "Save the database, the authority and the settings to a file, while servers run",
		Long: `Save the database, the authority and the settings to a file, while servers run.

The file is a compressed tar file with a manifest. It contains secrets, and only the
user that makes it can read it. An existing file is not overwritten. Settings are
read as “weir serve” reads them: the file of --config and the files of secrets that
it names are saved as well.`,
		Example: `  weir admin backup --data-dir /var/lib/weir --output /backup/weir-$(date +%F).tar.gz
  weir admin backup --config /etc/weir.yaml --files --output /backup --keep 14`}
	config.AddFlags(cmd)
	output := cmd.Flags().String("output", "", "`FILE` to write, or a directory for a file that is named after the time (required)")
	keep := cmd.Flags().Int("keep", 0, "keep only the newest `N` backups in the directory (default all)")
	files := cmd.Flags().Bool("files", false, "save the shared directories, too")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if *output == "" {
			return config.Usagef("--output is required: the file to write")
		}
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		if *files {
			ownFiles(cfg)
		}
		file, dir := *output, ""
		if info, err := os.Stat(file); err == nil && info.IsDir() {
			file, dir = filepath.Join(file, time.Now().UTC().Format(backupName)), file
		}
		if *keep < 0 || *keep > 0 && dir == "" {
			return config.Usagef("--keep: needs a directory as --output, and a positive number")
		}
		if err := backUpAndReport(cmd, cfg, file, *files); err != nil || *keep == 0 {
			return err
		}
		return keepNewest(dir, *keep)
	}
	return cmd
}

// backupName is the name of a backup in a directory, as a format of its time. By their names,
// backups are in the order of time.
const backupName = "weir-20060102T150405Z.tar.gz"

func backUpAndReport(cmd *cobra.Command, cfg config.Config, file string, files bool) error {
	m, saved, err := backUp(cmd.Context(), cfg, file, files)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: installation %s, generation %d, schema %d; %d entries, %d MiB in %d MiB\n", file,
		m.Installation, m.Generation, m.Schema, saved.Entries, saved.Bytes>>20, saved.Size>>20)
	if _, err := os.Stat(cfg.AuthorityFile); err != nil {
		fmt.Fprintf(cmd.OutOrStdout(), "without the certificate authority: there is no %s; if the server has another, restored agents, webhooks and authenticator apps do not work\n",
			cfg.AuthorityFile)
	}
	if saved.Skipped > 0 {
		fmt.Fprintf(cmd.OutOrStdout(), "%d sockets, FIFOs and devices in the shared directories were not saved\n", saved.Skipped)
	}
	return nil
}

// keepNewest removes all backups in a directory but the newest. It does not know which these are
// if the clock was ahead when one was made.
func keepNewest(dir string, keep int) error {
	entries, err := os.ReadDir(dir) // sorted by name
	var list []string
	for _, e := range entries {
		if _, err := time.Parse(backupName, e.Name()); err == nil && e.Type().IsRegular() {
			list = append(list, filepath.Join(dir, e.Name()))
		}
	}
	if n := len(list); n > 0 && filepath.Base(list[n-1]) > time.Now().UTC().Format(backupName) {
		return errors.Join(err, fmt.Errorf("no old backup was removed: %s is named after a later time than now", list[n-1]))
	}
	for _, old := range list[:max(len(list)-keep, 0)] {
		err = errors.Join(err, os.Remove(old))
	}
	return err
}

// abandoned is how long nothing is written by a backup that was killed.
const abandoned = 24 * time.Hour

// removeAbandoned removes what backups that were killed have left in a directory, which has all
// of a database or more. As long as any of it is new, a backup goes on there.
func removeAbandoned(dir string) error {
	entries, err := os.ReadDir(dir)
	var left []string
	for _, e := range entries {
		if ours, _ := filepath.Match(archive.Temporary, e.Name()); !ours {
			continue
		}
		if info, err := e.Info(); err != nil || time.Since(info.ModTime()) < abandoned {
			return nil
		}
		left = append(left, filepath.Join(dir, e.Name()))
	}
	for _, name := range left {
		err = errors.Join(err, os.RemoveAll(name))
	}
	return err
}

// ownFiles has this program go on as the owner of the shared files, if it is not root, but
// has subordinate IDs. Without them, the files are all this user's.
func ownFiles(cfg config.Config) {
	if os.Geteuid() != 0 && !cfg.IDRange.Empty() {
		_ = enterUserNamespace(cfg) // what cannot be read is an error later
	}
}

// backUp saves the database and files of a configuration to a new file.
func backUp(ctx context.Context, cfg config.Config, file string, files bool) (m archive.Manifest, saved archive.Saved, err error) {
	db, err := openToRead(ctx, cfg)
	if err != nil {
		return m, saved, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	in, err := db.Read(ctx).Installation()
	if err != nil {
		return m, saved, err
	}
	m = archive.Manifest{Version: buildVersion().Version, Database: db.Dialect(), Installation: in.UID, Generation: in.Generation,
		CreatedAt: db.Now()}
	if m.Schema, _, err = schemaVersions(ctx, db); err != nil {
		return m, saved, err
	}
	// Beside the output, where there must be room for it anyway.
	_ = removeAbandoned(filepath.Dir(file)) // what is another user's stays
	temporary, err := os.MkdirTemp(filepath.Dir(file), archive.Temporary)
	if err != nil {
		return m, saved, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	database := filepath.Join(temporary, databaseName)
	if err := saveDatabase(ctx, db, database); err != nil {
		return m, saved, noBackup(err)
	}
	shared := ""
	if files { // after the database, so that the files of all its projects exist
		shared = cfg.SharedDir
	}
	saved, err = archive.Write(ctx, file, m, append([]archive.Source{{Name: databaseName, File: database}}, secretFiles(cfg)...), shared)
	return m, saved, err
}

// saveDatabase writes a copy of a database to a new file of SQLite, whichever kind it is.
func saveDatabase(ctx context.Context, db *store.Store, file string) (err error) {
	if db.Dialect() == "sqlite" {
		return db.BackUp(ctx, file)
	}
	target, err := store.Open(ctx, "", file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close(), removeLogs(filepath.Dir(file))) }()
	if err := migrateUp(ctx, target); err != nil {
		return err
	}
	if _, err := target.CopyFrom(ctx, db); err != nil {
		return err
	}
	return target.Settle(ctx)
}

// removeLogs removes what SQLite keeps beside a closed database.
func removeLogs(dir string) (err error) {
	for _, suffix := range []string{"-wal", "-shm"} {
		if failed := os.Remove(filepath.Join(dir, databaseName+suffix)); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	return err
}

// noBackup says with the error of a database what it prevented.
func noBackup(err error) error {
	if e, ok := errors.AsType[*models.Error](err); ok && e.Err != nil {
		err = e.Err
	}
	return fmt.Errorf("no backup was made: %w", err)
}

// secretFiles are the files beside the database that a server needs, as far as it has them.
func secretFiles(cfg config.Config) (list []archive.Source) {
	for _, s := range []archive.Source{
		{Name: authorityName, File: cfg.AuthorityFile},
		{Name: path.Join(settingsDir, "config.yaml"), File: cfg.File},
		{Name: path.Join(settingsDir, "metrics-token"), File: cfg.MetricsFile},
		{Name: path.Join(settingsDir, "oidc-client-secret"), File: cfg.OIDC.SecretFile},
		{Name: path.Join(settingsDir, "smtp-password"), File: cfg.Notifications.PasswordFile},
	} {
		if s.File == "" {
			continue
		}
		if _, err := os.Stat(s.File); errors.Is(err, os.ErrNotExist) {
			continue // a database on which no server has run
		}
		list = append(list, s)
	}
	return list
}
