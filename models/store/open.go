package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/driver/sqlite"
	"gorm.io/gorm"
	"gorm.io/gorm/schema"

	"weir/models"
)

// Connections at most, of PostgreSQL for all, of SQLite for reading.
const (
	postgresConnections = 20
	sqliteReaders       = 8
)

// Open connects to databaseURL (postgres://…), or, when that is empty, to
// SQLite in the file at path, which it creates with its directory.
func Open(ctx context.Context, databaseURL, path string) (*Store, error) {
	s := &Store{dialect: "sqlite", Clock: time.Now, Elapsed: elapsed, origin: strconv.FormatUint(rand.Uint64(), 36),
		space: space{free: freeSpace}}
	var err error
	if databaseURL != "" {
		s.dialect = "postgres"
		s.write, err = open(postgres.New(postgres.Config{DSN: databaseURL,
			OptionOpenDB: []stdlib.OptionOpenDB{stdlib.OptionAfterConnect(limitIdleTransactions)}}), postgresConnections)
		s.read, s.snapshots = s.write, make(chan struct{}, postgresConnections/2)
	} else {
		err = s.openSQLite(path)
	}
	if err != nil {
		return nil, err
	}
	db, err := s.write.DB()
	if err == nil {
		s.probe = cmp.Or(s.probe, db)
		err = db.PingContext(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot reach the %s database: %w", s.dialect, err)
	}
	return s, nil
}

// limitIdleTransactions makes PostgreSQL end idle transactions: a server that is
// paused may have locks that all others wait for.
func limitIdleTransactions(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, "SET idle_in_transaction_session_timeout = '15s'")
	return err
}

func (s *Store) openSQLite(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	// The file contains secrets: only this user can read it, with any umask.
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(f.Chmod(0o600), f.Close()); err != nil {
		return err
	}
	s.space.dir = filepath.Dir(path)
	s.AddDisk(models.Say("the database"), s.space.dir)
	if free, _, err := freeSpace(s.space.dir); err == nil && free < startBytes {
		if err := os.Remove(s.startFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	file := "file:" + (&url.URL{Path: path}).EscapedPath()
	if s.probe, err = sql.Open(sqliteDriver, file+"?mode=ro&_busy_timeout=1000"); err != nil {
		return err
	}
	s.probe.SetMaxIdleConns(-1) // the other connections have in memory what the file may have lost
	dsn := file + "?_journal_mode=WAL&_synchronous=FULL&_foreign_keys=on&_busy_timeout=10000"
	if s.write, err = open(sqliteAt(dsn+"&_txlock=immediate"), 1); err != nil {
		return err
	}
	s.snapshots = make(chan struct{}, sqliteReaders/2)
	s.read, err = open(sqliteAt(dsn+"&_query_only=on"), sqliteReaders)
	return err
}

func sqliteAt(dsn string) gorm.Dialector {
	return sqlite.New(sqlite.Config{DriverName: sqliteDriver, DSN: dsn})
}

func open(dialector gorm.Dialector, connections int) (*gorm.DB, error) {
	db, err := gorm.Open(dialector, &gorm.Config{
		// gorm would make memory_mi_b of MemoryMiB.
		NamingStrategy:         schema.NamingStrategy{NameReplacer: strings.NewReplacer("MiB", "Mib")},
		TranslateError:         true,
		SkipDefaultTransaction: true,
		Logger:                 statementLogger(slog.Default()),
	})
	if err != nil {
		return nil, err
	}
	pool, err := db.DB()
	if err != nil {
		return nil, err
	}
	pool.SetMaxOpenConns(connections)
	pool.SetMaxIdleConns(connections)
	return db, nil
}
