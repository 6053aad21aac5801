package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"weir/cmd/weir/archive"
	"weir/cmd/weir/config"
	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/workspaces"
)

// restoring is the prefix of the directory that a restore fills.
const restoring = ".restore-"

func newRestoreCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "restore FILE", Args: cobra.ExactArgs(1),
		Short: "Restore a backup to an empty data directory, and an empty PostgreSQL database if one is set",
		Long: `Restore a backup to an empty data directory, and an empty PostgreSQL database if one is set.

A backup of either kind of database can be restored to either.

The restored database is a further generation of its installation: its server leaves
alone what servers of other generations have started, here or elsewhere. Its sessions
and password links have ended, and its workspaces, runs and deployments are shown as
ended. The archive is checked before anything is written, and after an error nothing
is left. Restore only backups that you trust: whoever has made one can have put any
account into it.`,
		Example: `  weir admin restore /backup/weir-2026-01-31.tar.gz --data-dir /var/lib/weir
  weir admin restore /backup/weir-2026-01-31.tar.gz --data-dir /var/lib/weir --database-url "$URL"`}
	config.AddFlags(cmd, config.ForRestore...)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		cfg, err := config.Load(cmd)
		if err != nil {
			return err
		}
		r := restore{cfg: cfg, file: args[0]}
		if err := r.run(cmd.Context()); err != nil {
			return fmt.Errorf("nothing was restored: %w", err)
		}
		r.report(cmd.OutOrStdout())
		return nil
	}
	return cmd
}

// restore is one restore of a backup.
type restore struct {
	cfg  config.Config
	file string

	manifest     archive.Manifest
	installation models.Installation
	ended        workspaces.Ended
	head         models.AuditHead
}

func (r *restore) run(ctx context.Context) (err error) {
	if err := r.check(ctx); err != nil {
		return err
	}
	if r.manifest.Shared {
		ownFiles(r.cfg)
	}
	release, err := claimEmpty(r.cfg.DataDir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release(err == nil)) }()
	temporary, err := os.MkdirTemp(r.cfg.DataDir, restoring+"*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	room, err := roomIn(r.cfg.DataDir)
	if err != nil {
		return err
	}
	if _, _, err := archive.Extract(ctx, r.file, temporary, room); err != nil {
		return err
	}
	if err := r.prepare(ctx, temporary); err != nil {
		return err
	}
	if r.cfg.DatabaseURL == "" {
		return moveInto(r.cfg.DataDir, temporary, databaseName)
	}
	return r.toPostgres(ctx, temporary)
}

// check reads the whole archive before anything is written.
func (r *restore) check(ctx context.Context) (err error) {
	room, err := roomIn(existingParent(r.cfg.DataDir))
	if err != nil {
		return err
	}
	if r.manifest, _, err = archive.Check(ctx, r.file, room); err != nil {
		return err
	}
	if len(r.manifest.Files) == 0 || r.manifest.Files[0].Name != databaseName {
		return errors.New("the archive has no database")
	}
	for _, f := range r.manifest.Files[1:] {
		if f.Name != authorityName && filepath.Dir(f.Name) != settingsDir {
			return fmt.Errorf("the archive has a file %q that no backup has", f.Name)
		}
	}
	if newest := migrations.Newest(); r.manifest.Schema > newest {
		return fmt.Errorf("the backup has version %d of the database schema, this program knows up to %d: use Weir %s or a later version",
			r.manifest.Schema, newest, r.manifest.Version)
	}
	return nil
}

// prepare makes the extracted database one that a server can use.
func (r *restore) prepare(ctx context.Context, dir string) (err error) {
	db, err := store.Open(ctx, "", filepath.Join(dir, databaseName))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close(), removeLogs(dir)) }()
	if err := db.Check(ctx); err != nil {
		return err
	}
	current, _, err := schemaVersions(ctx, db)
	if err == nil && current != r.manifest.Schema {
		err = fmt.Errorf("the database has version %d of the schema, the manifest says %d", current, r.manifest.Schema)
	}
	if err != nil {
		return err
	}
	if err := migrateUp(ctx, db); err != nil {
		return err
	}
	if _, err := db.VerifyAudit(ctx, models.AuditHead{}); err != nil {
		return err
	}
	if err := r.nextGeneration(ctx, db); err != nil {
		return err
	}
	if r.head, err = db.VerifyAudit(ctx, models.AuditHead{}); err != nil {
		return err
	}
	return db.Settle(ctx)
}

// nextGeneration makes the database one of its own, in which nothing runs.
func (r *restore) nextGeneration(ctx context.Context, db *store.Store) error {
	before, err := db.Read(ctx).Installation()
	if err != nil {
		return err
	}
	if before.UID != r.manifest.Installation || before.Generation != r.manifest.Generation {
		return errors.New("the database is not of the installation that the manifest names")
	}
	at := r.manifest.CreatedAt.UTC()
	why := models.Say("The database was restored from a backup of %s.", models.Instant{At: at})
	ctx = policies.WithOrigin(ctx, policies.Origin{Via: policies.ViaCommand})
	r.installation, r.ended, err = workspaces.StartGeneration(ctx, db, at, why)
	return err
}

func (r *restore) report(out io.Writer) {
	fmt.Fprintf(out, "Restored installation %s from the backup of %s to %s: generation %d\n", r.installation.UID,
		r.manifest.CreatedAt.UTC().Format(time.RFC3339), r.cfg.DataDir, r.installation.Generation)
	fmt.Fprintf(out, "ended %d workspaces, %d runs and %d deployments, and all sessions\n",
		r.ended.Workspaces, r.ended.Runs, r.ended.Deployments)
	fmt.Fprintf(out, "audit head %s\n", r.head)
	for _, name := range []string{authorityName, archive.SharedDir, settingsDir} {
		if _, err := os.Lstat(filepath.Join(r.cfg.DataDir, name)); err == nil {
			fmt.Fprintf(out, "restored %s\n", filepath.Join(r.cfg.DataDir, name))
		}
	}
	fmt.Fprintln(out, "Where the settings authority-file and shared-dir name other places, move these there before a server is started.")
	if !r.manifest.Shared {
		fmt.Fprintln(out, "The backup has no shared directories: restore them before a server is started.")
	}
}

// claimEmpty creates dir if need be and keeps servers from using it until release, which
// removes what was made unless it is kept. It is an error if dir has something.
func claimEmpty(dir string) (release func(keep bool) error, err error) {
	_, noDir := os.Lstat(dir)
	_, noLock := os.Lstat(filepath.Join(dir, "lock"))
	lock, err := lockDataDir(dir)
	if err != nil {
		return nil, err
	}
	release = func(keep bool) error {
		if keep {
			return lock.Close()
		}
		var err error
		if noLock != nil {
			err = os.Remove(lock.Name())
		}
		err = errors.Join(err, lock.Close())
		if noDir != nil {
			err = errors.Join(err, os.Remove(dir))
		}
		return err
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, restoring): // of a restore that was killed
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, name)))
		case name != "lock" && name != "lost+found":
			err = fmt.Errorf("the data directory %s is not empty: it has %s", dir, name)
		}
		if err != nil {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, release(false))
	}
	return release, nil
}

// moveInto moves what was restored to its place, and what is last after all else.
func moveInto(dir, from string, last ...string) error {
	var moved []string
	for _, name := range append([]string{authorityName, settingsDir, archive.SharedDir}, last...) {
		err := os.Rename(filepath.Join(from, name), filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			for _, m := range moved {
				err = errors.Join(err, os.RemoveAll(filepath.Join(dir, m)))
			}
			return err
		}
		moved = append(moved, name)
	}
	return archive.SyncDir(dir)
}

// keptFree are bytes that a restore leaves on the disk.
const keptFree = 64 << 20

// roomIn returns how many bytes a restore may write to the disk of a directory.
func roomIn(dir string) (int64, error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(disk.Bavail)*disk.Bsize - keptFree, nil
}

// existingParent is dir, or the closest directory above it that exists.
func existingParent(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || filepath.Dir(dir) == dir {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}
