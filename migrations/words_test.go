package migrations_test

import (
	"strings"
	"testing"

	"weir/migrations"
	"weir/models/store/storetest"
)

// A database of version 13 keeps its data under the new names, and gets the
// old ones back on the way down.
func TestWordsKeepTheData(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			db := sqlOf(t, storetest.OpenEmpty(t, dialect))
			run := func(statement string) {
				t.Helper()
				if _, err := db.Exec(statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
			check := func(query, want string) {
				t.Helper()
				var got string
				if err := db.QueryRow(query).Scan(&got); err != nil || got != want {
					t.Errorf("%s: %q, %v; want %q", query, got, err, want)
				}
			}
			up(t, db, dialect)
			downTo13 := func() {
				t.Helper()
				if err := migrations.DownTo(t.Context(), db, dialect, 13); err != nil {
					t.Fatal(err)
				}
			}
			downTo13()
			for _, row := range rows {
				if !since16(row) {
					run("INSERT INTO " + before14.Replace(row))
				}
			}
			run("UPDATE roles SET peak_gpu_cores = 7, peak_storage_mib = 8")
			run("UPDATE project_history SET promised_cpu_milli = 9")
			run("UPDATE projects SET ask_to_join = TRUE")
			run(`UPDATE quota_requests SET asked = '{"peak":{"role_id":1,"peak":{"gpu_cores":5}}}', decided = NULL`)
			run(`UPDATE providers SET terms = '{"cores":50,"notice_minutes":30}'`)
			run(`UPDATE agents SET revoked_at = ` + day + `, revoked_why = '{"f":"an administrator has revoked it"}'`)
			run("UPDATE deliveries SET answer = 'thanks'")
			run("UPDATE users SET session_epoch = 5 WHERE id = 1")
			run("UPDATE visits SET epoch = 5")

			up(t, db, dialect)
			check("SELECT limit_gpu_cores || ' ' || limit_storage_mib FROM roles", "7 8")
			check("SELECT CAST(allocated_cpu_milli AS TEXT) FROM project_history", "9")
			check("SELECT name FROM projects WHERE join_requests", "p")
			check("SELECT kind || ' ' || requested FROM quota_requests", `limit {"limit":{"role_id":1,"limit":{"gpu_cores":5}}}`)
			check("SELECT terms FROM providers", `{"cores":50,"grace_minutes":30}`)
			check("SELECT serial FROM agents WHERE revoked_by_admin", "s")
			check("SELECT response FROM deliveries", "thanks")
			check("SELECT u.session_generation || ' ' || v.session_generation FROM users u JOIN visits v ON v.user_id = u.id", "5 5")
			check("SELECT kind FROM notifications", "k")
			check("SELECT keys FROM revocations", "user:1")

			downTo13()
			check("SELECT kind || ' ' || asked FROM quota_requests", `peak {"peak":{"role_id":1,"peak":{"gpu_cores":5}}}`)
			check("SELECT terms FROM providers", `{"cores":50,"notice_minutes":30}`)
			check("SELECT peak_gpu_cores || ' ' || peak_storage_mib FROM roles", "7 8")
			check("SELECT u.session_epoch || ' ' || v.epoch FROM users u JOIN visits v ON v.user_id = u.id", "5 5")
		})
	}
}

// since16 reports whether a row is of a table or kind that came after version 15.
func since16(row string) bool {
	for _, prefix := range []string{"pool_changes ", "second_factors ", "recovery_codes ", "holders ", "runs ", "run_events ", "deployment", "gpu_prices ", "provider_latencies ", "idempotency_keys ", "invitations ", "file_", "storage_use ", "member_storage_use ", "curators ", "reservation", "trashed_files ", "one_time_tokens (hash, purpose, invitation_id", "one_time_tokens (hash, purpose, user_id, expires_at", "deliveries (key, receiver"} {
		if strings.HasPrefix(row, prefix) {
			return true
		}
	}
	return false
}
