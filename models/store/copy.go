package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// singletons are the tables with one row, which a migration creates.
var singletons = []string{"audit_head", "overcommit", "pool_lock"}

// copyBatch is the number of rows of one INSERT.
const copyBatch = 200

// row is a row of any table, by column.
type row map[string]any

// CopyFrom copies all rows of source, an SQLite database, to this PostgreSQL database
// and returns how many there are. Both must have the same schema, and this one no rows
// except those of the migrations. The copy is one transaction: after an error nothing has
// changed. Nothing else may write to either database meanwhile; a write to source waits.
func (s *Store) CopyFrom(ctx context.Context, source *Store) (copied int64, err error) {
	if source.dialect != "sqlite" || s.dialect != "postgres" {
		return 0, fmt.Errorf("cannot copy from %s to %s: only from SQLite to PostgreSQL", source.dialect, s.dialect)
	}
	err = source.write.WithContext(ctx).Transaction(func(from *gorm.DB) error {
		return s.write.WithContext(ctx).Transaction(func(to *gorm.DB) error {
			c := databaseCopy{from: from, to: to}
			if err := c.run(); err != nil {
				return err
			}
			copied = c.rows
			_, err := (&Queries{db: to, postgres: true}).verifyAudit(ctx, models.AuditHead{})
			return err
		})
	})
	return copied, err
}

// databaseCopy copies the rows of one transaction to another.
type databaseCopy struct {
	from, to *gorm.DB
	rows     int64
}

func (c *databaseCopy) run() error {
	var tables []string
	if err := c.from.Raw(`SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'goose_db_version'
		ORDER BY name`).Scan(&tables).Error; err != nil {
		return err
	}
	if err := c.checkEmpty(tables); err != nil {
		return err
	}
	// Rows refer to each other across tables, and also in circles.
	if err := c.alterForeignKeys("DEFERRABLE INITIALLY DEFERRED"); err != nil {
		return err
	}
	for _, table := range tables {
		if err := c.copyTable(table); err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
	}
	if err := c.to.Exec("SET CONSTRAINTS ALL IMMEDIATE").Error; err != nil {
		return err
	}
	return errors.Join(c.alterForeignKeys("NOT DEFERRABLE"), c.setSequences())
}

func (c *databaseCopy) checkEmpty(tables []string) error {
	for _, table := range tables {
		if slices.Contains(singletons, table) {
			continue
		}
		if found, err := exists(c.to.Table(table)); err != nil {
			return err
		} else if found {
			return fmt.Errorf("the target database is not empty: table %s has rows", table)
		}
	}
	return nil
}

func (c *databaseCopy) alterForeignKeys(how string) error {
	var statements []string
	if err := c.to.Raw(`SELECT format('ALTER TABLE %s ALTER CONSTRAINT %I ` + how + `', conrelid::regclass, conname) FROM pg_constraint
		WHERE contype = 'f' AND connamespace = current_schema()::regnamespace`).Scan(&statements).Error; err != nil {
		return err
	}
	for _, statement := range statements {
		if err := c.to.Exec(statement).Error; err != nil {
			return err
		}
	}
	return nil
}

func (c *databaseCopy) copyTable(table string) error {
	write := c.insert
	if slices.Contains(singletons, table) {
		write = c.update
	}
	want, err := readRows(c.from, table, func(batch []row) error { return write(table, batch) })
	if err != nil {
		return err
	}
	var got int64
	if err := c.to.Table(table).Count(&got).Error; err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("has %d rows, its copy %d", want, got)
	}
	c.rows += got
	return nil
}

func (c *databaseCopy) insert(table string, batch []row) error {
	values := make([]map[string]any, len(batch))
	for i, r := range batch {
		values[i] = r
	}
	return c.to.Table(table).Create(values).Error
}

// update replaces the row of a singleton, unless it is the same: the head of the audit
// cannot be set again to the same number.
func (c *databaseCopy) update(table string, batch []row) error {
	_, err := readRows(c.to, table, func(present []row) error {
		if maps.Equal(present[0], batch[0]) {
			return nil
		}
		return c.to.Table(table).Where("id = ?", batch[0]["id"]).Updates(map[string]any(batch[0])).Error
	})
	return err
}

// setSequences continues the numbers of SQLite, which include those of deleted rows.
func (c *databaseCopy) setSequences() error {
	var identities []struct{ TableName, ColumnName string }
	if err := c.to.Raw(`SELECT table_name, column_name FROM information_schema.columns
		WHERE table_schema = current_schema() AND is_identity = 'YES'`).Scan(&identities).Error; err != nil {
		return err
	}
	for _, i := range identities {
		var last []int64
		err := c.from.Raw("SELECT seq FROM sqlite_sequence WHERE name = ? AND seq > 0", i.TableName).Scan(&last).Error
		if err == nil && len(last) > 0 {
			err = c.to.Exec("SELECT setval(pg_get_serial_sequence(?, ?), ?)", i.TableName, i.ColumnName, last[0]).Error
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readRows calls use with the rows of a table, in batches, and returns their number.
func readRows(db *gorm.DB, table string, use func(batch []row) error) (n int64, err error) {
	rows, err := db.Table(table).Rows()
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return 0, err
	}
	var batch []row
	for rows.Next() {
		r, err := scanRow(rows, columns)
		if err != nil {
			return n, err
		}
		n++
		if batch = append(batch, r); len(batch) == copyBatch {
			if err := use(batch); err != nil {
				return n, err
			}
			batch = nil
		}
	}
	if err := rows.Err(); err != nil || len(batch) == 0 {
		return n, err
	}
	rows.Close() // PostgreSQL has one query at a time in a transaction
	return n, use(batch)
}

func scanRow(rows *sql.Rows, columns []string) (row, error) {
	values, pointers := make([]any, len(columns)), make([]any, len(columns))
	for i := range values {
		pointers[i] = &values[i]
	}
	err := rows.Scan(pointers...)
	r := make(row, len(columns))
	for i, column := range columns {
		if at, ok := values[i].(time.Time); ok {
			values[i] = at.UTC()
		}
		r[column] = values[i]
	}
	return r, err
}
