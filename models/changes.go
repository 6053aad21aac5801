package models

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

const (
	// channel is what servers on one PostgreSQL tell each other changes by.
	channel = "weir_changes"
	// AnythingMayHaveChanged is the topic that stands for all: what other
	// servers changed was not heard for a while.
	AnythingMayHaveChanged = "*"

	maxNotice   = 7000 // bytes; PostgreSQL takes just below 8000
	listenPause = time.Second
)

// passOn lets the other servers on this PostgreSQL know, when the transaction
// commits, what it changed.
func (q *Queries) passOn(origin string) error {
	if !q.postgres || len(q.topics) == 0 {
		return nil
	}
	topics := make([]string, 0, len(q.topics))
	for t := range q.topics {
		topics = append(topics, t)
	}
	text := strings.Join(topics, " ")
	if len(text) > maxNotice {
		text = AnythingMayHaveChanged
	}
	return q.db.Exec("SELECT pg_notify(?, ?)", channel, origin+" "+text).Error
}

// Listen hears what other servers on the same PostgreSQL change, and passes
// it to the listeners of [Store.OnChange], until ctx ends. After a time
// without a connection the listeners hear AnythingMayHaveChanged. On SQLite
// there are no others.
func (s *Store) Listen(ctx context.Context, trouble func(error)) {
	if s.dialect != "postgres" {
		return
	}
	for ctx.Err() == nil {
		if err := s.listen(ctx); err != nil && ctx.Err() == nil {
			trouble(fmt.Errorf("changes of other servers are not heard: %w", err))
		}
		select {
		case <-ctx.Done():
		case <-time.After(listenPause):
		}
	}
}

func (s *Store) listen(ctx context.Context) error {
	db, err := s.write.DB()
	if err != nil {
		return err
	}
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(driver any) error {
		raw, ok := driver.(*stdlib.Conn)
		if !ok {
			return errors.New("not a connection of pgx")
		}
		return s.hear(ctx, raw.Conn())
	})
	if errors.Is(err, sql.ErrConnDone) {
		err = nil
	}
	// What listens must not go back into the pool.
	return errors.Join(err, discard(conn))
}

func (s *Store) hear(ctx context.Context, conn *pgx.Conn) error {
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return err
	}
	s.listening.Store(true)
	defer s.listening.Store(false)
	s.publish(map[string]bool{AnythingMayHaveChanged: true}) // while nobody listened
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		origin, topics, _ := strings.Cut(n.Payload, " ")
		if origin == s.origin {
			continue
		}
		set := map[string]bool{}
		for _, t := range strings.Fields(topics) {
			set[t] = true
		}
		s.publish(set)
	}
}
