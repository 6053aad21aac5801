package models

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// aloneKey is an arbitrary number that all servers of Weir share.
const aloneKey = 0x77656972 // "weir"

// Alone claims to be the only server on a PostgreSQL database: workspaces run
// on one machine, and the server of another would take them for gone. The
// claim lasts until it is closed, or its connection breaks: ask whether it
// Holds. SQLite's file is claimed with its directory.
func (s *Store) Alone(ctx context.Context) (*Claim, error) {
	if s.dialect != "postgres" {
		return &Claim{}, nil
	}
	db, err := s.write.DB()
	if err != nil {
		return nil, err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	if err := claim(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Claim{conn: conn}, nil
}

// claim waits a little for a server that has just been killed: PostgreSQL
// needs a moment to see that its connection is gone.
func claim(ctx context.Context, conn *sql.Conn) error {
	const patience, pause = 10 * time.Second, 100 * time.Millisecond
	for waited := time.Duration(0); ; waited += pause {
		var got bool
		if err := conn.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", aloneKey).Scan(&got); err != nil || got {
			return err
		}
		if waited >= patience {
			return errors.New("another weir serves from this database already")
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Claim is what Alone gives.
type Claim struct{ conn *sql.Conn }

// Holds is nil as long as the claim's connection lives.
func (c *Claim) Holds(ctx context.Context) error {
	if c.conn == nil {
		return nil
	}
	return c.conn.PingContext(ctx)
}

// Close gives the claim up. The connection is closed for good: back in the
// pool it would keep its lock.
func (c *Claim) Close() error {
	if c.conn == nil {
		return nil
	}
	return discard(c.conn)
}
