package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"weir/models"
)

const (
	// channel carries the changes between servers on one PostgreSQL.
	channel    = "weir_changes"
	maxPayload = 7000 // bytes of a NOTIFY; PostgreSQL takes just below 8000
	retryPause = time.Second
)

// notifyServers sends the changed topics to the other servers on this
// PostgreSQL when the transaction commits.
func (q *Queries) notifyServers() error {
	if !q.postgres || len(q.topics) == 0 {
		return nil
	}
	text := strings.Join(slices.Collect(maps.Keys(q.topics)), " ")
	if len(text) > maxPayload {
		text = AllTopics
	}
	return q.db.Exec("SELECT pg_notify(?, ?)", channel, q.origin+" "+text).Error
}

// Listen passes what other servers on the same PostgreSQL change to the
// listeners of [Store.OnChange] until ctx ends. After a lost connection the
// listeners get AllTopics and Reconnected. On SQLite there are no other servers.
func (s *Store) Listen(ctx context.Context, onError func(error)) {
	if s.dialect != "postgres" {
		return
	}
	missed := []string{AllTopics} // what came before LISTEN
	for ctx.Err() == nil {
		if err := s.listen(ctx, missed); err != nil && ctx.Err() == nil {
			onError(fmt.Errorf("changes of other servers are not heard: %w", err))
		}
		missed = []string{AllTopics, Reconnected}
		models.Sleep(ctx, retryPause)
	}
}

func (s *Store) listen(ctx context.Context, missed []string) error {
	conn, err := s.connection(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(driver any) error {
		raw, ok := driver.(*stdlib.Conn)
		if !ok {
			return errors.New("not a connection of pgx")
		}
		return s.receive(ctx, raw.Conn(), missed)
	})
	if errors.Is(err, sql.ErrConnDone) {
		err = nil
	}
	// A listening connection must not go back into the pool.
	return errors.Join(err, discard(conn))
}

// receive publishes NOTIFY payloads of other servers until ctx ends or the
// connection breaks.
func (s *Store) receive(ctx context.Context, conn *pgx.Conn, missed []string) error {
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	s.listening.Store(true)
	defer s.listening.Store(false)
	s.Publish(missed...)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		origin, topics, _ := strings.Cut(n.Payload, " ")
		if origin != s.origin {
			s.Publish(strings.Fields(topics)...)
		}
	}
}
