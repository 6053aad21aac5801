package models

import (
	"errors"

	"gorm.io/gorm"
)

// Statement is one that was sent to the database.
type Statement struct {
	SQL  string
	Args []any
	Rows int64 // found or changed; 0 where they are read one by one
}

// Watch tells seen every statement from now on, also those within
// transactions. Tests bound by it what a page asks of the database; seen must
// return at once, and may be called by several goroutines.
func (s *Store) Watch(seen func(Statement)) error {
	tell := func(db *gorm.DB) {
		if !db.DryRun && db.Statement.SQL.Len() > 0 { // subqueries are built by running them dry
			seen(Statement{SQL: db.Statement.SQL.String(), Args: db.Statement.Vars, Rows: db.RowsAffected})
		}
	}
	dbs := []*gorm.DB{s.read}
	if s.write != s.read {
		dbs = append(dbs, s.write)
	}
	var errs []error
	for _, db := range dbs {
		c := db.Callback()
		errs = append(errs, c.Query().After("*").Register("weir:watch", tell), c.Row().After("*").Register("weir:watch", tell),
			c.Raw().After("*").Register("weir:watch", tell), c.Create().After("*").Register("weir:watch", tell),
			c.Update().After("*").Register("weir:watch", tell), c.Delete().After("*").Register("weir:watch", tell))
	}
	return errors.Join(errs...)
}
