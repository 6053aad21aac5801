package migrations_test

import (
	"context"
	"database/sql"
	"maps"
	"slices"
	"strings"
	"testing"

	"weir/migrations"
	"weir/models/store"
	"weir/models/store/storetest"
)

const day = "'2030-01-02 00:00:00+00:00'"

// rows has one row for every table, parents first, in SQL for both databases.
// pool_lock, audit_head, overcommit, installation and sign_in_policy have their own.
var rows = []string{
	"users (id, email, name, password_hash, created_at) VALUES (1, 'a@example.org', 'A', '', " + day + ")",
	"users (id, email, name, password_hash, created_at) VALUES (2, 'b@example.org', 'B', '', " + day + ")",
	"second_factors (user_id, secret, step) VALUES (1, 's', 1)",
	"recovery_codes (user_id, hash) VALUES (1, 'h')",
	"sessions (token, data, expires_at) VALUES ('s', 'x', " + day + ")",
	"access_tokens (user_id, name, hash, expires_at, created_at) VALUES (1, 't', 'h', " + day + ", " + day + ")",
	`projects (id, name, quota_gpu_cores, quota_gpu_memory_mib, quota_cpu_milli, quota_memory_mib, quota_storage_mib, starts_at, created_at)
		VALUES (1, 'p', 1, 1, 1, 1, 1, ` + day + ", " + day + ")",
	`roles (id, project_id, name, permission, limit_gpu_cores, limit_gpu_memory_mib, limit_cpu_milli, limit_memory_mib, limit_storage_mib, created_at)
		VALUES (1, 1, 'r', 'member', 1, 1, 1, 1, 1, ` + day + ")",
	`project_history (project_id, from_at, members, allocated_gpu_cores, allocated_gpu_memory_mib, allocated_cpu_milli, allocated_memory_mib, allocated_storage_mib,
		quota_gpu_cores, quota_gpu_memory_mib, quota_cpu_milli, quota_memory_mib, quota_storage_mib) VALUES (1, ` + day + ", 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1)",
	"members (id, project_id, user_id, role_id, created_at) VALUES (1, 1, 1, 1, " + day + ")",
	"departments (id, name, created_at) VALUES (1, 'd', " + day + ")",
	"identities (id, user_id, issuer, subject, email, created_at, seen_at) VALUES (1, 1, 'https://id', 's', 'a@example.org', " + day + ", " + day + ")",
	"identity_members (identity_id, member_id) VALUES (1, 1)",
	"environments (id, name, language, language_version, created_at) VALUES (1, 'e', 'python', '3', " + day + ")",
	"providers (id, name, state, seen_at, created_at) VALUES (1, 'n', 'online', " + day + ", " + day + ")",
	"devices (id, provider_id, uuid, number, minor, model, memory_mib, created_at) VALUES (1, 1, 'u', 0, 0, 'm', 1, " + day + ")",
	"pool_changes (version, provider_id) VALUES (1, 1)",
	`holders (id, kind, project_id, member_id, user_id, name, phase, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (1, 'workspace', 1, 1, 1, 'w', 'in_use', 1, 1, 1, 1, 1, ` + day + ")",
	"workspaces (id, holder_id, project_id, member_id, user_id, environment_id, state) VALUES (1, 1, 1, 1, 1, 1, 'running')",
	`holders (id, kind, project_id, member_id, user_id, name, phase, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (2, 'run', 1, 1, 1, 'python', 'ended', 1, 1, 1, 1, 1, ` + day + ")",
	"runs (id, holder_id, project_id, member_id, user_id, environment_id, command, state, exit_code) VALUES (1, 2, 1, 1, 1, 1, '[\"python\"]', 'ended', 0)",
	"run_events (run_id, project_id, at, state, message) VALUES (1, 1, " + day + ", 'ended', '')",
	`holders (id, kind, project_id, member_id, user_id, name, phase, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (3, 'deployment', 1, 1, 1, 'llama', 'in_use', 1, 100, 1, 1, 1, ` + day + ")",
	`deployments (id, holder_id, project_id, member_id, user_id, environment_id, path, service_type, plan, batch, context, hidden, vocabulary,
		text_prompts, secret, state) VALUES (1, 3, 1, 1, 1, 1, '/notebook/1/m', 'text-generation', '{}', 1, 1, 1, 1, FALSE, 's', 'serving')`,
	"deployment_parts (deployment_id, project_id, number, state) VALUES (1, 1, 0, 'ready')",
	"deployment_events (deployment_id, project_id, at, state, message) VALUES (1, 1, " + day + ", 'serving', '')",
	`shares (device_id, holder_id, project_id, user_id, cores, memory_mib, enforcement, from_at)
		VALUES (1, 1, 1, 1, 1, 1, 'advisory', ` + day + ")",
	"workspace_events (workspace_id, project_id, at, state, message) VALUES (1, 1, " + day + ", 'running', '')",
	"decisions (at, project_id, holder_id, user_id, outcome, demand, explanation) VALUES (" + day + ", 1, 1, 1, 'granted', '', '')",
	`invitations (id, email, project_id, role_id, department_id, inviter_id, created_at, expires_at) VALUES (1, 'c@example.org', 1, 1, 1, 1, ` + day + ", " + day + ")",
	"one_time_tokens (hash, purpose, invitation_id, expires_at) VALUES ('i', 'invitation', 1, " + day + ")",
	"one_time_tokens (hash, purpose, user_id, expires_at) VALUES ('p', 'password', 1, " + day + ")",
	"one_time_tokens (hash, purpose, user_id, workspace_id, expires_at) VALUES ('h', 'open', 1, 1, " + day + ")",
	"visits (hash, workspace_id, user_id, session_generation, session, expires_at) VALUES ('h', 1, 1, 1, 's', " + day + ")",
	`agents (id, provider_id, key_hash, serial, issued_at, expires_at, created_at) VALUES (1, 1, 'k', 's', ` + day + ", " + day + ", " + day + ")",
	`authorizations (hash, gpu_code, owner_id, issued_by, created_at, expires_at, agent_id)
		VALUES ('h', 'g', 1, 1, ` + day + ", " + day + ", 1)",
	"device_states (device_id, at, utilisation, memory_used_mib, temperature, power_mw) VALUES (1, " + day + ", 1, 1, 1, 1)",
	`telemetry (device_id, step, slot, at, samples, utilisation_sum, utilisation_max, memory_sum, memory_max, temperature_sum, temperature_max, power_sum, power_max)
		VALUES (1, 5, 1, ` + day + ", 1, 1, 1, 1, 1, 1, 1, 1, 1)",
	"leaders (name, holder, epoch, expires_at) VALUES ('controller', 'h', 1, " + day + ")",
	"revocations (at, origin, keys) VALUES (" + day + ", 'o', 'user:1')",
	"servers (id, heartbeat, applied) VALUES ('o', 1, 1)",
	`quota_requests (id, kind, project_id, role_id, member_id, requester_id, requested, reason, created_at)
		VALUES (1, 'limit', 1, 1, 1, 1, '{}', 'r', ` + day + ")",
	"notifications (id, user_id, kind, text, created_at) VALUES (1, 1, 'k', '', " + day + ")",
	"notification_preferences (user_id) VALUES (1)",
	"webhooks (id, name, url, secret, created_at) VALUES (1, 'w', 'https://w', 's', " + day + ")",
	`deliveries (key, webhook_id, receiver, kind, state, queued_at, next_at, created_at)
		VALUES ('k', 1, 'webhook:1', 'k', 'pending', ` + day + ", " + day + ", " + day + ")",
	`deliveries (key, receiver, kind, state, queued_at, next_at, created_at)
		VALUES ('l', 'address:c@example.org', 'invitation', 'pending', ` + day + ", " + day + ", " + day + ")",
	"period_notifications (kind, thing_id, ends_at, days, notified_at) VALUES ('project', 1, " + day + ", 7, " + day + ")",
	"members (id, project_id, user_id, role_id, created_at) VALUES (2, 1, 2, 1, " + day + ")",
	"handovers (project_id, member_id, to_member_id, by_id, at) VALUES (1, 1, 2, 1, " + day + ")",
	"idempotency_keys (user_id, key, request, created_at) VALUES (1, 'k', 'r', " + day + ")",
	"file_rules (project_id, path, subject, access, download, changed_at) VALUES (1, '/notebook/1/a', 'project', 'read', 'deny', " + day + ")",
	"storage_use (project_id) VALUES (1)",
	"file_ids (id, first_id) VALUES (1, 100000)",
	"file_takeovers (project_id) VALUES (1)",
	"member_storage_use (member_id) VALUES (1)",
	"curators (directory, user_id, created_at) VALUES ('/public_model', 1, " + day + ")",
	`reservations (id, project_id, member_id, user_id, state, outcome, gpus, cores, gpu_memory_mib, duration_minutes, window_from, window_until, accept_part,
		accept_later, starts_at, ends_at, version, created_at) VALUES (1, 1, 1, 1, 'granted', 'granted', 1, 50, 1, 60, ` + day + ", " + day + ", FALSE, FALSE, " + day + ", " + day + ", 1, " + day + ")",
	"reservation_grants (reservation_id, device_id, cores, memory_mib, starts_at, ends_at) VALUES (1, 1, 50, 1, " + day + ", " + day + ")",
	"provider_latencies (provider_id, zone, micros, measured_at) VALUES (1, 'berlin', 8000, " + day + ")",
	"gpu_prices (id, model, billing, micros, currency, valid_from, created_at) VALUES (1, 'm', 'reserved', 1, 'EUR', " + day + ", " + day + ")",
	"file_operations (project_id, user_id, kind, path, target, expires_at) VALUES (1, 1, 'write', '/a', '', " + day + ")",
	"trashed_files (id, project_id, user_id, path, directory, bytes, at) VALUES (1, 1, 1, '/a', FALSE, 1, " + day + ")",
	"file_versions (id, project_id, user_id, path, bytes, at) VALUES (1, 1, 1, '/a', 1, " + day + ")",
	"audit_entries (id, at, actor, action, object, object_id, hash) VALUES (1, " + day + ", 'a', 'create', 'project', 1, 'h')",
}

// latest are the rows of tables that earlier versions, to which tests go back, do not have.
var latest = []string{
	"deployment_counts (deployment_id, step, at, measure, bucket, count, millis) VALUES (1, 60, " + day + ", 'duration', 30, 2, 1900)",
	"holder_utilisation (holder_id, at, percent) VALUES (1, " + day + ", 50)",
	"workspace_telemetry (workspace_id, at, cpu_milli, memory_mib, gpu_percent, kernels, busy_kernels) VALUES (1, " + day + ", 500, 300, NULL, 2, 1)",
	"split_presets (id, project_id, service_type, architecture, split, combine, cuts, user_id, created_at) VALUES (1, 1, 'n', '', 'layers', 'sum', '[]', 1, " + day + ")",
	"passkeys (id, user_id, name, credential_id, user_handle, public_key, ceremony_at, created_at) VALUES (1, 1, 'k', 'c', 'h', 'p', " + day + ", " + day + ")",
}

func TestUpDownUpWithData(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			s := storetest.OpenEmpty(t, dialect)
			db := sqlOf(t, s)
			for range 2 {
				up(t, db, dialect)
				fill(t, db)
				for table := range tables(t, db, dialect) {
					if n := count(t, db, table); n == 0 {
						t.Errorf("the test has no row for %s", table)
					}
				}
				if err := migrations.DownTo(t.Context(), db, dialect, 0); err != nil {
					t.Fatal(err)
				}
				if left := tables(t, db, dialect); len(left) > 0 {
					t.Errorf("left behind: %v", left)
				}
			}
			up(t, db, dialect)
		})
	}
}

func up(t *testing.T, db *sql.DB, dialect string) {
	t.Helper()
	ctx := context.Background()
	for range 2 { // the second changes nothing
		if err := migrations.Up(ctx, db, dialect); err != nil {
			t.Fatal(err)
		}
	}
	if current, newest, err := migrations.Versions(ctx, db, dialect); err != nil || current != newest || newest == 0 {
		t.Errorf("version %d of %d, %v", current, newest, err)
	}
}

func fill(t *testing.T, db *sql.DB) {
	t.Helper()
	for _, row := range append(slices.Clone(rows), latest...) {
		if _, err := db.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
}

func TestBothDialectsHaveTheSameTables(t *testing.T) {
	lite, pg := tables(t, sqlOf(t, storetest.Open(t, "sqlite")), "sqlite"), tables(t, sqlOf(t, storetest.Open(t, "postgres")), "postgres")
	names := slices.Sorted(maps.Keys(lite))
	if other := slices.Sorted(maps.Keys(pg)); !slices.Equal(names, other) {
		t.Fatalf("tables differ:\nsqlite   %v\npostgres %v", names, other)
	}
	for _, name := range names {
		if !slices.Equal(lite[name], pg[name]) {
			t.Errorf("%s differs:\nsqlite   %v\npostgres %v", name, lite[name], pg[name])
		}
	}
}

func TestUnknownDialect(t *testing.T) {
	if err := migrations.Up(t.Context(), nil, "oracle"); err == nil || !strings.Contains(err.Error(), "oracle") {
		t.Errorf("got %v", err)
	}
}

// columnsOf lists every column in the order of definition: table, column,
// whether it must be given.
var columnsOf = map[string]string{
	"sqlite": `SELECT m.name, c.name, c."notnull" = 1 OR c.pk > 0 FROM sqlite_master m, pragma_table_info(m.name) c
		WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name <> 'goose_db_version' ORDER BY m.name, c.cid`,
	"postgres": `SELECT table_name, column_name, is_nullable = 'NO' FROM information_schema.columns
		WHERE table_schema = 'public' AND table_name <> 'goose_db_version' ORDER BY table_name, ordinal_position`,
}

func tables(t *testing.T, db *sql.DB, dialect string) map[string][]string {
	t.Helper()
	found, err := db.Query(columnsOf[dialect])
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	all := map[string][]string{}
	for found.Next() {
		var table, column string
		var required bool
		if err := found.Scan(&table, &column, &required); err != nil {
			t.Fatal(err)
		}
		if required {
			column += " NOT NULL"
		}
		all[table] = append(all[table], column)
	}
	if err := found.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT COUNT(*) FROM " + table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func sqlOf(t *testing.T, s *store.Store) *sql.DB {
	t.Helper()
	db, err := s.SQL()
	if err != nil {
		t.Fatal(err)
	}
	return db
}

// The setting of a device from before sharing modes is migrated.
func TestExclusiveBecomesAMode(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			db := sqlOf(t, storetest.OpenEmpty(t, dialect))
			up(t, db, dialect)
			if err := migrations.DownTo(t.Context(), db, dialect, 1); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if strings.HasPrefix(row, "providers") || strings.HasPrefix(row, "devices") {
					if _, err := db.Exec("INSERT INTO " + row); err != nil {
						t.Fatal(err)
					}
				}
			}
			if _, err := db.Exec("UPDATE devices SET exclusive = TRUE"); err != nil {
				t.Fatal(err)
			}
			up(t, db, dialect)
			var sharing string
			if err := db.QueryRow("SELECT sharing FROM devices").Scan(&sharing); err != nil || sharing != "exclusive" {
				t.Errorf("sharing %q, %v", sharing, err)
			}
			if err := migrations.DownTo(t.Context(), db, dialect, 1); err != nil {
				t.Fatal(err)
			}
			var exclusive bool
			if err := db.QueryRow("SELECT exclusive FROM devices").Scan(&exclusive); err != nil || !exclusive {
				t.Errorf("exclusive %v, %v", exclusive, err)
			}
		})
	}
}
