package migrations_test

import (
	"cmp"
	"database/sql"
	"errors"
	"slices"
	"testing"

	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// A database of version 26 with a workspace that runs, one that waits and one that has
// ended keeps them with their shares and decisions, also on the way down and up again.
func TestHoldersKeepTheData(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			s := storetest.OpenEmpty(t, dialect)
			db := sqlOf(t, s)
			run := func(statement string) {
				t.Helper()
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			down := func() {
				t.Helper()
				if err := migrations.DownTo(t.Context(), db, dialect, 26); err != nil {
					t.Fatal(err)
				}
			}
			up(t, db, dialect)
			down()
			for _, table := range []string{"users", "projects", "roles", "members", "environments", "providers", "devices"} {
				run("INSERT INTO " + rowOf(table))
			}
			for _, w := range []string{"(3, 'old', 'stopped'", "(5, 'busy', 'running'", "(8, 'next', 'queued'"} {
				run(`INSERT INTO workspaces (id, name, state, project_id, member_id, user_id, environment_id, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
					VALUES ` + w + ", 1, 1, 1, 1, 1, 40, 1, 1, 1, " + day + ")")
			}
			run(`INSERT INTO workspaces (id, name, state, project_id, member_id, user_id, environment_id, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at, ended_at)
				VALUES (9, 'broken', 'stopping', 1, 1, 1, 1, 0, 0, 0, 1, 1, ` + day + ", " + day + ")")
			for _, share := range []string{"(2, 3, 7, " + day + ", NULL, '', NULL", "(4, 5, 40, NULL, " + day + `, '{"f":"why"}', 9`} {
				run(`INSERT INTO shares (id, workspace_id, cores, until_at, ends_at, end_reason, grant_id, device_id, project_id, user_id, memory_mib, enforcement, from_at)
					VALUES ` + share + ", 1, 1, 1, 1, 'advisory', " + day + ")")
			}
			for _, workspace := range []string{"3", "5", "8", "NULL"} {
				run("INSERT INTO decisions (workspace_id, at, project_id, user_id, outcome, demand, explanation) VALUES (" + workspace + ", " + day + ", 1, 1, 'refused', '', '')")
			}
			run("INSERT INTO workspace_events (workspace_id, project_id, at, state, message) VALUES (5, 1, " + day + ", 'running', 'm')")
			before, indexesBefore := map[string][]string{}, indexes(t, db, dialect)
			for table := range tables(t, db, dialect) {
				before[table] = contents(t, db, table)
			}
			for range 2 {
				up(t, db, dialect)
				checkHolders(t, s)
				down()
				if got := indexes(t, db, dialect); !slices.Equal(got, indexesBefore) {
					t.Errorf("the indexes are\n%q, not\n%q", got, indexesBefore)
				}
				for table, want := range before {
					if got := contents(t, db, table); !slices.Equal(got, want) {
						t.Errorf("%s has\n%q, not\n%q", table, got, want)
					}
				}
			}
		})
	}
}

// indexes lists how the indexes of a database are made.
func indexes(t *testing.T, db *sql.DB, dialect string) (list []string) {
	t.Helper()
	rows, err := db.Query(map[string]string{
		"sqlite":   "SELECT sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL ORDER BY sql",
		"postgres": "SELECT indexdef FROM pg_indexes WHERE schemaname = current_schema() ORDER BY indexdef"}[dialect])
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var sql string
		if err := rows.Scan(&sql); err != nil {
			t.Fatal(err)
		}
		list = append(list, sql)
	}
	if err := rows.Err(); err != nil || len(list) < 20 {
		t.Fatalf("%d indexes, %v", len(list), err)
	}
	return list
}

// checkHolders checks the migrated database by the queries of the program.
func checkHolders(t *testing.T, s *store.Store) {
	t.Helper()
	q := s.Read(t.Context())
	queued, err := q.Queued()
	if err != nil || len(queued) != 1 || queued[0].ObjectID != 8 || queued[0].Kind != models.HolderWorkspace || queued[0].MemberID != 1 || queued[0].Demand.Cores != 40 || queued[0].Name != "next" {
		t.Errorf("the queue is %+v, %v", queued, err)
	}
	busy, err := q.Workspace(store.AllProjects, 5)
	if err != nil {
		t.Fatal(err)
	}
	if busy.Name != "busy" || busy.Demand.Cores != 40 || busy.RequestedAt.IsZero() {
		t.Errorf("the workspace that runs is %+v", busy)
	}
	phases := map[models.HolderPhase]int{}
	for _, id := range []int64{3, 5, 8, 9} {
		w, err1 := q.Workspace(store.AllProjects, id)
		c, err2 := q.Claim(w.HolderID)
		if err1 != nil || err2 != nil || c.Phase != w.State.Phase() {
			t.Errorf("%s is %s for the pool, %v, %v", w.State, c.Phase, err1, err2)
		}
		phases[c.Phase]++
	}
	if use, err := q.InUseByProject(1); err != nil || use != (models.Resources{GPUCores: 40, GPUMemoryMiB: 1, CPUMilli: 2, MemoryMiB: 2}) || len(phases) != 4 {
		t.Errorf("%+v in use by %v, %v", use, phases, err)
	}
	if broken, err := q.Workspace(store.AllProjects, 9); err != nil || !broken.StartFailed || broken.EndedAt != nil || busy.StartFailed {
		t.Errorf("the one whose start failed: %+v, %v", broken, err)
	}
	shares, err := q.SharesOf(busy.HolderID)
	if err != nil || len(shares) != 1 || shares[0].ID != 4 || shares[0].EndsAt == nil || shares[0].EndReason.String() != "why" || *shares[0].GrantID != 9 {
		t.Errorf("the workspace that runs has %+v, %v", shares, err)
	}
	history, err := q.ShareHistory(1, 10)
	if err != nil || len(history) != 2 || history[0].Name != "busy" || history[1].ObjectID != 3 || history[1].Cores != 7 {
		t.Errorf("the history is %+v, %v", history, err)
	}
	decisions, err := q.DecisionsIn(store.AllProjects, 10)
	if err != nil || len(decisions) != 4 || decisions[0].ObjectID != nil || *decisions[1].ObjectID != 8 || *decisions[3].ObjectID != 3 {
		t.Errorf("the decisions are %+v, %v", decisions, err)
	}
	launched := models.Workspace{ProjectID: 1, MemberID: 1, UserID: 1, EnvironmentID: 1, Name: "new", State: models.StateStarting, Version: 1, RequestedAt: s.Now()}
	rollback := models.Conflict("rolled back")
	err = s.InTx(t.Context(), func(q *store.Queries) error {
		return cmp.Or(q.CreateWorkspace(&launched, models.Text{}), error(rollback))
	})
	if !errors.Is(err, rollback) || launched.HolderID <= busy.HolderID {
		t.Errorf("a new workspace: %+v, %v", launched, err)
	}
	launched.Name = busy.Name
	err = s.InTx(t.Context(), func(q *store.Queries) error { return q.CreateWorkspace(&launched, models.Text{}) })
	if models.KindOf(err) != models.KindConflict {
		t.Errorf("a second workspace of a name: %v", err)
	}
}
