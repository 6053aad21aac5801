package store_test

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"testing"

	"weir/models/store"
)

// openSQLite is a database on one connection of the driver.
func openSQLite(t *testing.T, statements ...string) *sql.DB {
	db, err := sql.Open(store.SQLiteDriver, "file:"+filepath.Join(t.TempDir(), "x.db")+"?_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	db.SetMaxOpenConns(1)
	for _, s := range append(statements, "CREATE TABLE numbers (n INTEGER UNIQUE)", "INSERT INTO numbers VALUES (1), (2), (3)") {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(s, err)
		}
	}
	return db
}

// column reads a column of numbers within a transaction or outside.
func column(t *testing.T, db interface {
	Query(query string, args ...any) (*sql.Rows, error)
}, query string, args ...any) (list []int) {
	t.Helper()
	rows, err := db.Query(query, args...)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var n int
		if err := rows.Scan(&n); err != nil {
			t.Fatal(err)
		}
		list = append(list, n)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// A statement is prepared once for its connection, also by transactions, and again after an error.
func TestStatementsArePreparedOnce(t *testing.T) {
	db := openSQLite(t)
	first := store.Prepared(t, db)
	const above = "SELECT n FROM numbers WHERE n > ? ORDER BY n"
	for i := range 3 {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec("INSERT INTO numbers VALUES (?)", 1); err == nil {
			t.Error("a number was added twice")
		}
		if _, err := tx.Exec("INSERT INTO numbers VALUES (?)", 10+i); err != nil {
			t.Fatal(err)
		}
		if got := column(t, tx, above, 2); len(got) != 2+i || got[0] != 3 {
			t.Error(got)
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		now := store.Prepared(t, db)
		if i > 0 && !maps.Equal(now, first) {
			t.Errorf("%v are prepared after %v", now, first)
		}
		first = now
	}
	if len(first) != 3 { // with that of openSQLite
		t.Errorf("%v are prepared", first)
	}
}

// Rows of one text can be read within each other, and a statement that has rows left over
// holds nothing back.
func TestRowsWithinRows(t *testing.T) {
	db := openSQLite(t)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	const all = "SELECT n FROM numbers ORDER BY n"
	outer, err := tx.Query(all)
	if err != nil {
		t.Fatal(err)
	}
	for want := 1; outer.Next(); want++ {
		var n int
		if err := outer.Scan(&n); err != nil || n != want {
			t.Fatal(n, err)
		}
		if got := column(t, tx, all); len(got) != 3 {
			t.Error(got)
		}
		if want == 2 {
			break
		}
	}
	if err := outer.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range 3 { // what returns a row is not read to its end
		if _, err := tx.Exec("INSERT INTO numbers VALUES (?) RETURNING n", 20+n); err != nil {
			t.Fatal(err)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := column(t, db, all); len(got) != 6 {
		t.Error(got)
	}
}

// A connection keeps a bounded number of statements, and those of which rows are open.
func TestStatementsAreBounded(t *testing.T) {
	db := openSQLite(t)
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	open, err := tx.Query("SELECT n FROM numbers")
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 * store.MaxStatements {
		if got := column(t, tx, fmt.Sprintf("SELECT n + %d FROM numbers WHERE n = ?", n), 1); len(got) != 1 || got[0] != 1+n {
			t.Fatal(n, got)
		}
	}
	for range 3 { // its statement was not closed
		if !open.Next() {
			t.Fatal(open.Err())
		}
	}
	if err := errors.Join(open.Close(), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	if got := store.Prepared(t, db); len(got) != store.MaxStatements {
		t.Errorf("%d statements are prepared", len(got))
	}
}

// A statement sees a changed table, and refuses arguments that do not fit.
func TestChangedTable(t *testing.T) {
	db := openSQLite(t)
	const star = "SELECT * FROM numbers WHERE n = ?"
	for i, change := range []string{"ALTER TABLE numbers ADD COLUMN a INTEGER DEFAULT 7", "-- one more\nALTER TABLE numbers ADD COLUMN b INTEGER DEFAULT 8;"} {
		column(t, db, "SELECT n FROM numbers WHERE n = ?", 1)
		before, err := db.Query(star, 2)
		if err != nil {
			t.Fatal(err)
		}
		before.Close()
		if _, err := db.Exec(change); err != nil {
			t.Fatal(err)
		}
		after, err := db.Query(star, 2)
		if err != nil {
			t.Fatal(err)
		}
		if columns, err := after.Columns(); err != nil || len(columns) != 2+i {
			t.Error(columns, err)
		}
		after.Close()
	}
	for _, args := range [][]any{{}, {1, 2}} {
		want := fmt.Sprintf("%d arguments for a statement with 1 parameters", len(args))
		rows, err := db.Query(star, args...)
		if err == nil {
			rows.Close()
		}
		if err == nil || err.Error() != want {
			t.Errorf("%d arguments for one parameter: %v", len(args), err)
		}
	}
}
