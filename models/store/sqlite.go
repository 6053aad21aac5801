package store

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/mattn/go-sqlite3"
)

// sqliteDriver keeps the log when the last connection closes, so that a start needs no
// space for it. Its lower knows all letters, as that of PostgreSQL does, so that a search
// finds the same on both; that of SQLite knows those of ASCII only.
const sqliteDriver = "sqlite3_weir"

func init() {
	sql.Register(sqliteDriver, preparingDriver{&sqlite3.SQLiteDriver{ConnectHook: func(c *sqlite3.SQLiteConn) error {
		return errors.Join(c.SetFileControlInt("main", sqlite3.SQLITE_FCNTL_PERSIST_WAL, 1), c.RegisterFunc("lower", lower, true))
	}}})
}

// lower is the function of SQL: of what is no text, such as NULL, it is that itself.
func lower(v any) any {
	if text, ok := v.(string); ok {
		return strings.ToLower(text)
	}
	return v
}

// preparingDriver is a driver each of whose connections prepares a statement once, as pgx does for
// PostgreSQL. gorm could, but what it prepares within a transaction, it prepares again in each
// later one: database/sql binds it to the first.
type preparingDriver struct{ *sqlite3.SQLiteDriver }

func (d preparingDriver) Open(dsn string) (driver.Conn, error) {
	c, err := d.SQLiteDriver.Open(dsn)
	if err != nil {
		return nil, err
	}
	return &sqliteConn{SQLiteConn: c.(*sqlite3.SQLiteConn), statements: map[string]*sqliteStatement{}}, nil
}

// sqliteConn is a connection with its prepared statements, by their text. database/sql
// uses it from one goroutine at a time.
type sqliteConn struct {
	*sqlite3.SQLiteConn
	statements map[string]*sqliteStatement
}

// Bounds of the statements of a connection: the text of a list of IDs has a parameter for each.
const (
	maxStatements = 500
	maxStatement  = 4096 // bytes of its text
)

type sqliteStatement struct {
	*sqlite3.SQLiteStmt
	inputs int
	open   bool // rows of it are being read
}

// prepared returns the statement with a text, or nil if this use needs another way: several
// statements in one text, a long one, rows of it that are still open.
func (c *sqliteConn) prepared(ctx context.Context, query string, inputs int) (*sqliteStatement, error) {
	s, ok := c.statements[query]
	if !ok {
		if strings.Contains(query, ";") || len(query) > maxStatement {
			return nil, nil
		}
		if len(c.statements) >= maxStatements {
			c.forget(1)
		}
		made, err := c.PrepareContext(ctx, query)
		if err != nil {
			return nil, err
		}
		s = &sqliteStatement{SQLiteStmt: made.(*sqlite3.SQLiteStmt), inputs: made.NumInput()}
		c.statements[query] = s
	}
	if s.inputs != inputs {
		return nil, fmt.Errorf("%d arguments for a statement with %d parameters", inputs, s.inputs)
	}
	if s.open {
		return nil, nil
	}
	return s, nil
}

// forget closes up to n statements that have no open rows.
func (c *sqliteConn) forget(n int) {
	for query, s := range c.statements {
		if n == 0 {
			return
		}
		if !s.open {
			_ = s.Close()
			delete(c.statements, query)
			n--
		}
	}
}

func (c *sqliteConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	s, err := c.prepared(ctx, query, len(args))
	if err != nil {
		return nil, err
	}
	if s == nil {
		return c.SQLiteConn.QueryContext(ctx, query, args)
	}
	rows, err := s.QueryContext(ctx, args)
	if err != nil {
		return nil, err
	}
	s.open = true
	return &sqliteRows{rows.(*sqlite3.SQLiteRows), s}, nil
}

// ExecContext prepares what changes rows and returns none: another statement might not have
// ended when its first row is there, and would keep its transaction open until its next use.
func (c *sqliteConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	verb, _, _ := strings.Cut(query, " ")
	if (verb == "INSERT" || verb == "UPDATE" || verb == "DELETE") && !strings.Contains(strings.ToUpper(query), "RETURNING") {
		s, err := c.prepared(ctx, query, len(args))
		if err != nil {
			return nil, err
		}
		if s != nil {
			return s.ExecContext(ctx, args)
		}
	}
	if verb == "CREATE" || verb == "ALTER" || verb == "DROP" || strings.Contains(query, ";") {
		// The driver counts the columns of SELECT * before SQLite looks at the changed table. Other
		// connections would be wrong once; migrations come before their first read.
		defer c.forget(len(c.statements))
	}
	return c.SQLiteConn.ExecContext(ctx, query, args)
}

func (c *sqliteConn) Close() error {
	for _, s := range c.statements {
		_ = s.Close()
	}
	return c.SQLiteConn.Close()
}

// sqliteRows are the rows of a prepared statement, which can be used again when they are closed.
type sqliteRows struct {
	*sqlite3.SQLiteRows
	of *sqliteStatement
}

func (r *sqliteRows) Close() error {
	r.of.open = false
	return r.SQLiteRows.Close()
}
