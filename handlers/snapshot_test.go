package handlers

import (
	"context"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
)

var generations = regexp.MustCompile(`generation-\d+`)

// A page of many reads shows one state of the database, after whichever of its
// statements a transaction commits that changes what all of them read.
func TestPagesShowOneState(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			w := newWorldOn(t, storetest.Open(t, dialect), func(*Config) {})
			workspace := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
			generation, statements, changeAfter, reading := 0, 0, 0, false
			change := func() {
				generation++
				w.rename("generation-"+id(int64(generation)), workspace)
			}
			change()
			if err := w.store.Watch(func(store.Statement) {
				if !reading {
					return
				}
				if statements++; statements == changeAfter {
					reading = false
					change()
					reading = true
				}
			}); err != nil {
				t.Fatal(err)
			}
			for page, places := range map[string]int{"/projects/" + id(w.project): 4, "/": 2} {
				changeAfter = 0
				for statements = 1; statements > changeAfter; {
					changeAfter++
					statements, reading = 0, true
					text := readPage(t, w.app, w.member, page+"?after="+id(int64(changeAfter)), "en")
					reading = false
					seen := generations.FindAllString(text, -1)
					if len(seen) < places || strings.Count(strings.Join(seen, " ")+" ", seen[0]+" ") != len(seen) {
						t.Errorf("%s shows %q with a change after statement %d of %d", page, seen, changeAfter, statements)
					}
				}
				if changeAfter < 6 {
					t.Errorf("%s made %d statements", page, changeAfter)
				}
			}
		})
	}
}

// A workspace whose stop has been committed shows no share, although the server has not
// heard of the commit yet.
func TestStoppedWorkspaceShowsNoShare(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			w := newWorldOn(t, storetest.Open(t, dialect), func(*Config) {})
			workspace := w.create(w.member, "/workspaces", `{"project_id":`+id(w.project)+`,"request":{"gpus":1,"cores":10}}`)
			at := "/workspaces/" + id(workspace)
			if a := w.get(w.member, at); a.body["state"] != "starting" || len(a.body["shares"].([]any)) != 1 {
				t.Fatalf("before: %s", a.raw)
			}
			tx := must(must(w.store.SQL())(w).BeginTx(context.Background(), nil))(w)
			for _, statement := range []string{
				"UPDATE workspaces SET state = 'stopped' WHERE id = $1",
				"UPDATE holders SET phase = 'ended' WHERE id = (SELECT holder_id FROM workspaces WHERE id = $1)",
				"UPDATE shares SET until_at = from_at WHERE holder_id = (SELECT holder_id FROM workspaces WHERE id = $1)",
			} {
				must(tx.Exec(statement, workspace))(w)
			}
			for _, statement := range []string{"UPDATE pool_lock SET decisions = decisions + 1",
				"INSERT INTO pool_changes (version, provider_id) SELECT decisions, 0 FROM pool_lock"} {
				must(tx.Exec(statement))(w)
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if a := w.get(w.member, at); a.body["state"] != "stopped" || len(a.body["shares"].([]any)) != 0 {
				t.Errorf("after: %s", a.raw)
			}
		})
	}
}

// rename changes the names of the project, a role, a member and a workspace at once.
func (w *world) rename(to string, workspace int64) {
	w.Helper()
	tx := must(must(w.store.SQL())(w).BeginTx(context.Background(), nil))(w)
	for table, row := range map[string]int64{"projects": w.project, "roles": w.role} {
		must(tx.Exec("UPDATE "+table+" SET name = $1 WHERE id = $2", to, row))(w)
	}
	must(tx.Exec("UPDATE holders SET name = $1 WHERE id = (SELECT holder_id FROM workspaces WHERE id = $2)", to, workspace))(w)
	must(tx.Exec("UPDATE users SET name = $1 WHERE email = 'ann@example.org'", to))(w)
	if err := tx.Commit(); err != nil {
		w.Fatal(err)
	}
}

// Many pages are read at once, more than there are connections. None waits for another
// forever.
func TestManyPagesAtOnce(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			w := newWorldOn(t, storetest.Open(t, dialect), func(*Config) {})
			var readers sync.WaitGroup
			for i := range 60 { // each address is a page of its own to the cache
				n := strings.Repeat("0", i) + id(w.project)
				for _, page := range []string{"/?n=" + n, "/pool?n=" + n, "/projects/" + id(w.project) + "?n=" + n, "/launch?project_id=" + n} {
					readers.Go(func() { readPage(t, w.app, w.member, page, "en") })
				}
			}
			all := make(chan struct{})
			go func() { readers.Wait(); close(all) }()
			select {
			case <-all:
			case <-time.After(5 * time.Minute):
				t.Fatal("pages are still being read")
			}
		})
	}
}
