package models

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// claimLock is an arbitrary number that all servers of Weir share.
const claimLock = 0x77656972 // "weir"

// ClaimDatabase claims a PostgreSQL database for one server: when workspaces run as
// local processes, the server of another machine would take them for gone. The
// claim ends when it is closed or its connection breaks; see [Claim.Holds].
// A SQLite file is claimed with its directory.
func (s *Store) ClaimDatabase(ctx context.Context) (*Claim, error) {
	if s.dialect != "postgres" {
		return &Claim{}, nil
	}
	conn, err := s.connection(ctx)
	if err != nil {
		return nil, err
	}
	if err := acquireClaim(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Claim{conn: conn}, nil
}

// acquireClaim waits a little for a server that has just been killed:
// PostgreSQL needs a moment to see that its connection is gone.
func acquireClaim(ctx context.Context, conn *sql.Conn) error {
	const timeout, pause = 10 * time.Second, 100 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		var acquired bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", claimLock).Scan(&acquired); err != nil || acquired {
			return err
		}
		if waited >= timeout {
			return errors.New("another weir serves from this database already")
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// Claim makes a server the only one on a database.
type Claim struct{ conn *sql.Conn }

// Holds returns an error when the connection of the claim is broken.
func (c *Claim) Holds(ctx context.Context) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.PingContext(ctx)
}

// Close releases the claim. It closes the connection: back in the pool it would
// keep the lock.
func (c *Claim) Close() error {
	if c.conn == nil {
		return nil
	}
	return discard(c.conn)
}
