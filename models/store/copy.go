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
var singletons = []string{"audit_head", "installation", "overcommit", "pool_lock", "sign_in_policy"}

// copyBatch is the number of rows of one INSERT.
const copyBatch = 200

// row is a row of any table, by column.
type row = map[string]any

// CopyFrom copies all rows of source, a database of the other kind, to this one and returns
// how many there are. Both must have the same schema, and this one no rows except those of
// the migrations. The copy is one transaction, and of one instant of source: after an error
// nothing has changed. Nothing else may write to this database meanwhile; a write to source
// waits if that is SQLite.
func (s *Store) CopyFrom(ctx context.Context, source *Store) (copied int64, err error) {
	if source.dialect == s.dialect {
		return 0, fmt.Errorf("cannot copy from %s to %s: only to the other kind of database", source.dialect, s.dialect)
	}
	err = source.readOneInstant(ctx, func(from *gorm.DB) error {
		return s.write.WithContext(ctx).Transaction(func(to *gorm.DB) error {
			c := databaseCopy{from: from, to: to, toPostgres: s.dialect == "postgres"}
			if err := c.run(); err != nil {
				return err
			}
			copied = c.rows
			_, err := (&Queries{db: to, postgres: c.toPostgres}).verifyAudit(ctx, models.AuditHead{})
			return err
		})
	})
	return copied, err
}

// readOneInstant calls read with a transaction that sees one instant of the database.
func (s *Store) readOneInstant(ctx context.Context, read func(*gorm.DB) error) error {
	if s.dialect == "sqlite" {
		return s.write.WithContext(ctx).Transaction(read)
	}
	return s.write.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
		// The other database may be slow, and nothing waits for a transaction that only reads.
		if err := tx.Exec("SET LOCAL idle_in_transaction_session_timeout = 0").Error; err != nil {
			return err
		}
		return read(tx)
	}, &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true})
}

// databaseCopy copies the rows of one transaction to another.
type databaseCopy struct {
	from, to   *gorm.DB
	toPostgres bool
	rows       int64
}

func (c *databaseCopy) run() error {
	tables, err := c.tables()
	if err != nil {
		return err
	}
	if err := c.checkEmpty(tables); err != nil {
		return err
	}
	if err := c.deferForeignKeys(); err != nil {
		return err
	}
	for _, table := range tables {
		if err := c.copyTable(table); err != nil {
			return fmt.Errorf("table %s: %w", table, err)
		}
	}
	if !c.toPostgres {
		return c.setSequencesOfSQLite()
	}
	if err := c.to.Exec("SET CONSTRAINTS ALL IMMEDIATE").Error; err != nil {
		return err
	}
	return errors.Join(c.alterForeignKeys("NOT DEFERRABLE"), c.setSequences())
}

// tables lists the tables of the source.
func (c *databaseCopy) tables() (list []string, err error) {
	query := `SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'
		AND name NOT IN ('goose_db_version', 'reserved_space') ORDER BY name`
	if !c.toPostgres {
		query = "SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename <> 'goose_db_version' ORDER BY tablename"
	}
	return list, c.from.Raw(query).Scan(&list).Error
}

// deferForeignKeys has foreign keys checked at the end: rows refer to each other across
// tables, and also in circles.
func (c *databaseCopy) deferForeignKeys() error {
	if !c.toPostgres {
		return c.to.Exec("PRAGMA defer_foreign_keys = ON").Error // until the transaction ends
	}
	return c.alterForeignKeys("DEFERRABLE INITIALLY DEFERRED")
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
	return c.to.Table(table).Create(batch).Error
}

// update replaces the row of a singleton, unless it is the same: the head of the audit
// cannot be set again to the same number.
func (c *databaseCopy) update(table string, batch []row) error {
	_, err := readRows(c.to, table, func(present []row) error {
		if maps.Equal(present[0], batch[0]) {
			return nil
		}
		return c.to.Table(table).Where("id = ?", batch[0]["id"]).Updates(batch[0]).Error
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

// setSequencesOfSQLite continues the numbers of PostgreSQL.
func (c *databaseCopy) setSequencesOfSQLite() error {
	var identities []struct {
		TableName string
		Last      int64
	}
	if err := c.from.Raw(`SELECT t.relname AS table_name, COALESCE(pg_sequence_last_value(s.oid), 0) AS last
		FROM pg_class s JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass AND d.deptype = 'i'
		JOIN pg_class t ON t.oid = d.refobjid
		WHERE s.relkind = 'S' AND t.relnamespace = current_schema()::regnamespace AND t.relname <> 'goose_db_version'`).
		Scan(&identities).Error; err != nil {
		return err
	}
	for _, i := range identities {
		err := c.to.Exec("DELETE FROM sqlite_sequence WHERE name = ?", i.TableName).Error
		if err == nil && i.Last > 0 {
			err = c.to.Exec("INSERT INTO sqlite_sequence (name, seq) VALUES (?, ?)", i.TableName, i.Last).Error
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
