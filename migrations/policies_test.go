package migrations_test

import (
	"strings"
	"testing"

	"weir/migrations"
	"weir/models/store/storetest"
)

// Managers and members stay so, and no role gains rights by the way back.
func TestRolesKeepWhatTheyPermit(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			db := sqlOf(t, storetest.OpenEmpty(t, dialect))
			up(t, db, dialect)
			run := func(statement string) {
				t.Helper()
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			words := func() string {
				t.Helper()
				var list []string
				found, err := db.Query("SELECT permission FROM roles ORDER BY id")
				if err != nil {
					t.Fatal(err)
				}
				defer found.Close()
				for found.Next() {
					var word string
					if err := found.Scan(&word); err != nil {
						t.Fatal(err)
					}
					list = append(list, word)
				}
				return strings.Join(list, " ")
			}
			if err := migrations.DownTo(t.Context(), db, dialect, 8); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if strings.HasPrefix(row, "projects") || strings.HasPrefix(row, "roles") {
					run("INSERT INTO " + before14.Replace(row))
				}
			}
			for _, n := range []string{"2", "3", "4", "5"} {
				run(strings.Replace("INSERT INTO "+before14.Replace(rowOf("roles")), "VALUES (1, 1, 'r'", "VALUES ("+n+", 1, 'r"+n+"'", 1))
			}
			run("UPDATE roles SET permission = 'manager' WHERE id = 2")
			up(t, db, dialect)
			if got := words(); got != "member manager member member member" {
				t.Errorf("up: %s", got)
			}
			run("UPDATE roles SET permission = 'owner' WHERE id = 3")
			run("UPDATE roles SET permission = 'viewer' WHERE id = 4")
			run("UPDATE roles SET permission = 'custom', permissions = '[\"role:write\"]' WHERE id = 5")
			if _, err := db.Exec("UPDATE roles SET permission = 'boss'"); err == nil {
				t.Error("a word that there is not was taken")
			}
			if err := migrations.DownTo(t.Context(), db, dialect, 8); err != nil {
				t.Fatal(err)
			}
			if got := words(); got != "member manager manager member member" {
				t.Errorf("down: %s", got)
			}
		})
	}
}

// before14 names columns and tables as they were called up to version 13.
var before14 = strings.NewReplacer("limit_", "peak_", "allocated_", "promised_", "requested, ", "asked, ", "join_requests", "ask_to_join",
	"'limit'", "'peak'", "notification_preferences", "notice_preferences", "period_notifications", "period_notices", "notifications (", "notices (",
	"notified_at", "told_at", "origin, keys", "origin, ties", "heartbeat, applied", "beat, done", "session_generation", "epoch",
	"shares (device_id, holder_id,", "shares (device_id, workspace_id,", "decisions (at, project_id, holder_id,", "decisions (at, project_id, workspace_id,",
	"workspaces (id, holder_id, project_id, member_id, user_id, environment_id, state) VALUES (1, 1, 1, 1, 1, 1, 'running')",
	`workspaces (id, project_id, member_id, user_id, environment_id, name, state, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (1, 1, 1, 1, 1, 'w', 'running', 1, 1, 1, 1, 1, `+day+")")

// rowOf is the row of a table.
func rowOf(table string) string {
	for _, row := range rows {
		if strings.HasPrefix(row, table+" ") {
			return row
		}
	}
	return ""
}
