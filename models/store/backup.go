package store

import (
	"context"
	"errors"
	"fmt"
	"os"
)

// BackUp writes a consistent copy of the database to a new file of SQLite, which only this
// user can read, while servers use the database.
func (s *Store) BackUp(ctx context.Context, file string) error {
	if s.dialect != "sqlite" {
		return fmt.Errorf("cannot back up %s", s.dialect)
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := s.write.WithContext(ctx).Exec("VACUUM INTO ?", file).Error; err != nil {
		return errors.Join(s.ofSpace(err), os.Remove(file))
	}
	return nil
}

// Check returns an error if the database is damaged.
func (s *Store) Check(ctx context.Context) error {
	if s.dialect != "sqlite" {
		return nil
	}
	var found string
	err := s.write.WithContext(ctx).Raw("PRAGMA integrity_check(1)").Scan(&found).Error
	if err == nil && found != "ok" {
		err = fmt.Errorf("the database is damaged: %s", found)
	}
	return err
}

// Settle moves all changes into SQLite's file itself, so that it is complete without its log.
func (s *Store) Settle(ctx context.Context) error {
	if s.dialect != "sqlite" {
		return nil
	}
	return s.write.WithContext(ctx).Exec("PRAGMA wal_checkpoint(TRUNCATE)").Error
}
