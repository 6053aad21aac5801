package store_test

import (
	"database/sql"
	"fmt"
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
	}
	if got := store.Prepared(t, db); got != 3 { // with that of openSQLite
		t.Errorf("%d statements are prepared", got)
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

// A connection keeps a bounded number of statements, sees a changed table, and refuses
// arguments that do not fit.
func TestStatementsAreBounded(t *testing.T) {
	db := openSQLite(t)
	open, err := db.Query("SELECT n FROM numbers")
	if err != nil {
		t.Fatal(err)
	}
	open.Next()
	if err := open.Close(); err != nil {
		t.Fatal(err)
	}
	for n := range 2 * store.MaxStatements {
		if got := column(t, db, fmt.Sprintf("SELECT n + %d FROM numbers WHERE n = ?", n), 1); len(got) != 1 || got[0] != 1+n {
			t.Fatal(n, got)
		}
	}
	if got := store.Prepared(t, db); got != store.MaxStatements {
		t.Errorf("%d statements are prepared", got)
	}
	const star = "SELECT * FROM numbers WHERE n = ?"
	column(t, db, star, 1)
	if _, err := db.Exec("ALTER TABLE numbers ADD COLUMN m INTEGER DEFAULT 7; UPDATE numbers SET m = 8 WHERE n = 2"); err != nil {
		t.Fatal(err)
	}
	var n, m int
	if err := db.QueryRow(star, 2).Scan(&n, &m); err != nil || n != 2 || m != 8 {
		t.Error(n, m, err)
	}
	for _, args := range [][]any{{}, {1, 2}} {
		if err := db.QueryRow("SELECT n FROM numbers WHERE n + 0 = ?", args...).Scan(&n); err == nil {
			t.Errorf("%d arguments for one parameter", len(args))
		}
	}
}
