package store

import (
	"errors"

	"gorm.io/gorm"
)

// Statement is an SQL statement that was sent to the database.
type Statement struct {
	SQL  string
	Args []any
	Rows int64 // found or changed; 0 when rows are read one by one
}

// Watch calls observe with every statement from now on, including those within
// transactions. Tests use it to limit the statements of a page. observe must
// return at once and may be called by several goroutines.
func (s *Store) Watch(observe func(Statement)) error {
	callback := func(db *gorm.DB) {
		if !db.DryRun && db.Statement.SQL.Len() > 0 { // subqueries are built by dry runs
			observe(Statement{SQL: db.Statement.SQL.String(), Args: db.Statement.Vars, Rows: db.RowsAffected})
		}
	}
	dbs := []*gorm.DB{s.read}
	if s.write != s.read {
		dbs = append(dbs, s.write)
	}
	var errs []error
	for _, db := range dbs {
		c := db.Callback()
		errs = append(errs, c.Query().After("*").Register("weir:watch", callback), c.Row().After("*").Register("weir:watch", callback),
			c.Raw().After("*").Register("weir:watch", callback), c.Create().After("*").Register("weir:watch", callback),
			c.Update().After("*").Register("weir:watch", callback), c.Delete().After("*").Register("weir:watch", callback))
	}
	return errors.Join(errs...)
}
