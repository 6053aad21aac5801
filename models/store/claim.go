package store

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// claimLock is an arbitrary number that all servers of Weir share.
const claimLock = 0x77656972 // "weir"

// ClaimDatabase claims a PostgreSQL database for one server: the server of
// another machine would treat workspaces that run as local processes as missing.
// The claim ends when it is closed or its connection breaks; see [Claim.Holds].
// A SQLite file is claimed by the lock of its directory.
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

// acquireClaim retries for some seconds: PostgreSQL does not detect at once that
// the connection of a killed server is closed.
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

// Claim is the exclusive use of a database.
type Claim struct{ conn *sql.Conn }

// Holds returns an error when the connection of the claim is broken.
func (c *Claim) Holds(ctx context.Context) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.PingContext(ctx)
}

// Close releases the claim. It closes the connection, which in the pool would
// still have the lock.
func (c *Claim) Close() error {
	if c.conn == nil {
		return nil
	}
	return discard(c.conn)
}
