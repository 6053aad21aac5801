package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed sqlite/*.sql postgres/*.sql
var files embed.FS

// Up migrates db to the newest version. dialect is "sqlite" or "postgres".
func Up(ctx context.Context, db *sql.DB, dialect string) error {
	p, err := provider(db, dialect)
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// DownTo migrates db back to version; 0 removes all tables.
func DownTo(ctx context.Context, db *sql.DB, dialect string, version int64) error {
	p, err := provider(db, dialect)
	if err != nil {
		return err
	}
	_, err = p.DownTo(ctx, version)
	return err
}

// Versions returns the version of db and the newest one.
func Versions(ctx context.Context, db *sql.DB, dialect string) (current, newest int64, err error) {
	p, err := provider(db, dialect)
	if err != nil {
		return 0, 0, err
	}
	return p.GetVersions(ctx)
}

// Newest returns the newest version.
func Newest() (newest int64) {
	entries, err := files.ReadDir("sqlite")
	if err != nil {
		panic(err) // it is embedded
	}
	for _, e := range entries {
		if n, err := goose.NumericComponent(e.Name()); err == nil {
			newest = max(newest, n)
		}
	}
	return newest
}

func provider(db *sql.DB, dialect string) (*goose.Provider, error) {
	dialects := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres}
	d, ok := dialects[dialect]
	if !ok {
		return nil, fmt.Errorf("migrations: unknown dialect %q", dialect)
	}
	sub, err := fs.Sub(files, dialect)
	if err != nil {
		return nil, err
	}
	var options []goose.ProviderOption
	if d == goose.DialectPostgres { // several servers may start at once
		locker, err := lock.NewPostgresSessionLocker()
		if err != nil {
			return nil, err
		}
		options = append(options, goose.WithSessionLocker(locker))
	}
	return goose.NewProvider(d, db, sub, options...)
}
