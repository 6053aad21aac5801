package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"weir/models/store"
)

const leaderTask = "controller"

// EachTakeover holds up a leader before each transaction of a pass, in turn, while another
// server takes the lead. Nothing that the pass writes from then on may land. prepare gets
// a fresh store of either database and returns the pass, which has work for at least
// transactions.
func EachTakeover(t *testing.T, transactions int, prepare func(t *testing.T, s *store.Store) (pass func(context.Context) error)) {
	t.Helper()
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			for at := 1; ; at++ {
				begun := 0
				ok := t.Run(fmt.Sprint("before transaction ", at), func(t *testing.T) {
					s := Open(t, dialect)
					begun = takeOver(t, s, at, prepare(t, s))
				})
				if !ok || begun < at { // the pass was not held up
					if ok && begun < transactions {
						t.Errorf("the pass begins %d transactions, want %d", begun, transactions)
					}
					return
				}
			}
		})
	}
}

// takeOver runs a pass of a leader, whose lead another takes before a transaction, and
// returns how many transactions the pass has begun.
func takeOver(t *testing.T, s *store.Store, at int, pass func(context.Context) error) int {
	t.Helper()
	lead := func(holder string) int64 {
		epoch, err := s.Lead(t.Context(), leaderTask, holder, 0)
		if err != nil || epoch == 0 {
			t.Errorf("%s leads as %d: %v", holder, epoch, err)
		}
		return epoch
	}
	ctx, end := store.AsLeader(t.Context(), leaderTask, lead("old"))
	defer end()
	var begun atomic.Int64
	var before map[string][]string
	err := pass(beforeTransactions{ctx, func() {
		if begun.Add(1) == int64(at) {
			lead("new")
			before = rows(t, s)
		}
	}})
	if before == nil {
		if err != nil {
			t.Error(err)
		}
		return int(begun.Load())
	}
	after := rows(t, s)
	for table, list := range before {
		if !slices.Equal(list, after[table]) {
			t.Errorf("landed in %s:\n%s\nbefore:\n%s", table, strings.Join(after[table], "\n"), strings.Join(list, "\n"))
		}
	}
	return int(begun.Load())
}

// beforeTransactions calls do before each transaction in the context of a leader: the
// store looks up the term then.
type beforeTransactions struct {
	context.Context
	do func()
}

func (c beforeTransactions) Value(key any) any {
	v := c.Context.Value(key)
	if _, ok := v.(store.Term); ok {
		c.do()
	}
	return v
}

// rows are all rows by table, but for those of elections.
func rows(t *testing.T, s *store.Store) map[string][]string {
	t.Helper()
	tables := "SELECT name FROM sqlite_master WHERE type = 'table'"
	if s.Dialect() == "postgres" {
		tables = "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
	}
	found := map[string][]string{}
	list, err := query(t.Context(), s, tables)
	for _, table := range list {
		if table != "leaders" && err == nil {
			found[table], err = query(t.Context(), s, `SELECT * FROM "`+table+`"`)
		}
	}
	if err != nil || len(found) == 0 {
		t.Errorf("%d tables: %v", len(found), err)
	}
	return found
}

// query returns the rows of a query as sorted texts.
func query(ctx context.Context, s *store.Store, sql string) (list []string, err error) {
	db, err := s.SQL()
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryContext(ctx, sql)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		list = append(list, strings.TrimSpace(fmt.Sprintln(values...)))
	}
	slices.Sort(list)
	return list, rows.Err()
}
