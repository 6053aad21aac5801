package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"weir/cmd/weir/cli"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

const day = "'2020-01-02 00:00:00+00:00'"

// scraper is the token of a scraper.
const scraper = "the token of a scraper"

// busy are rows of an installation in which something of every kind runs and waits.
var busy = []string{
	"users (id, email, name, password_hash, created_at) VALUES (1, 'a@example.org', 'A', '', " + day + ")",
	"sessions (token, data, expires_at) VALUES ('s', 'x', " + day + ")",
	"access_tokens (user_id, name, hash, expires_at, created_at) VALUES (1, 't', 'h', " + day + ", " + day + ")",
	`projects (id, name, quota_gpu_cores, quota_gpu_memory_mib, quota_cpu_milli, quota_memory_mib, quota_storage_mib, starts_at, created_at)
		VALUES (1, 'p', 1, 1, 1, 1, 1, ` + day + ", " + day + ")",
	`roles (id, project_id, name, permission, limit_gpu_cores, limit_gpu_memory_mib, limit_cpu_milli, limit_memory_mib, limit_storage_mib, created_at)
		VALUES (1, 1, 'r', 'member', 1, 1, 1, 1, 1, ` + day + ")",
	"members (id, project_id, user_id, role_id, created_at) VALUES (1, 1, 1, 1, " + day + ")",
	"environments (id, name, language, language_version, created_at) VALUES (1, 'e', 'python', '3', " + day + ")",
	"providers (id, name, state, seen_at, created_at) VALUES (1, 'n', 'online', " + day + ", " + day + ")",
	"devices (id, provider_id, uuid, number, minor, model, memory_mib, created_at) VALUES (1, 1, 'u', 0, 0, 'm', 1, " + day + ")",
	`holders (id, kind, project_id, member_id, user_id, name, phase, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (1, 'workspace', 1, 1, 1, 'w', 'in_use', 1, 1, 1, 1, 1, ` + day + ")",
	"workspaces (id, holder_id, project_id, member_id, user_id, environment_id, state) VALUES (1, 1, 1, 1, 1, 1, 'running')",
	`holders (id, kind, project_id, member_id, user_id, name, phase, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (2, 'run', 1, 1, 1, 'python', 'queued', 1, 1, 1, 1, 1, ` + day + ")",
	"runs (id, holder_id, project_id, member_id, user_id, environment_id, command, state) VALUES (1, 2, 1, 1, 1, 1, '[\"python\"]', 'queued')",
	`holders (id, kind, project_id, member_id, user_id, name, phase, gpus, cores, gpu_memory_mib, cpu_milli, memory_mib, requested_at)
		VALUES (3, 'deployment', 1, 1, 1, 'llama', 'in_use', 1, 100, 1, 1, 1, ` + day + ")",
	`deployments (id, holder_id, project_id, member_id, user_id, environment_id, path, service_type, plan, batch, context, hidden, vocabulary,
		text_prompts, secret, state) VALUES (1, 3, 1, 1, 1, 1, '/notebook/1/m', 'text-generation', '{}', 1, 1, 1, 1, FALSE, 's', 'serving')`,
	"deployment_parts (deployment_id, project_id, number, state) VALUES (1, 1, 0, 'ready')",
	`shares (device_id, holder_id, project_id, user_id, cores, memory_mib, enforcement, from_at)
		VALUES (1, 1, 1, 1, 1, 1, 'advisory', ` + day + ")",
	"one_time_tokens (hash, purpose, user_id, expires_at) VALUES ('p', 'password', 1, " + day + ")",
	"visits (hash, workspace_id, user_id, session_generation, session, expires_at) VALUES ('h', 1, 1, 1, 's', " + day + ")",
	"leaders (name, holder, epoch, expires_at) VALUES ('controller', 'h', 1, " + day + ")",
	"servers (id, heartbeat, applied) VALUES ('o', 1, 1)",
	"webhooks (id, name, url, secret, created_at) VALUES (1, 'w', 'https://w', 's', " + day + ")",
	`deliveries (key, webhook_id, receiver, kind, state, queued_at, next_at, created_at)
		VALUES ('k', 1, 'webhook:1', 'k', 'pending', ` + day + ", " + day + ", " + day + ")",
}

// installation is the data of a server, with its database open as the server has it.
func installation(t *testing.T) (dir string, db *store.Store) {
	t.Helper()
	dir = t.TempDir()
	db, err := store.Open(t.Context(), "", filepath.Join(dir, "weir.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if err := migrateUp(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	fill(t, db)
	write(t, db, 3)
	for name, content := range map[string]string{"authority.pem": "the key", "shared/notebook/1/a.txt": "a file", "token": scraper} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir, db
}

func fill(t *testing.T, db *store.Store) {
	t.Helper()
	raw, err := db.SQL()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range busy {
		if _, err := raw.Exec("INSERT INTO " + row); err != nil {
			t.Fatalf("%s: %v", row, err)
		}
	}
}

// admin runs weir admin.
func admin(args ...string) (code int, out, says string) {
	var stdout, stderr bytes.Buffer
	code = weir(append([]string{"admin"}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func succeed(t *testing.T, args ...string) (out string) {
	t.Helper()
	code, out, says := admin(args...)
	if code != cli.ExitOK {
		t.Fatalf("%v: %d %s", args, code, says)
	}
	return out
}

func backupOf(t *testing.T, dir string, more ...string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "weir.tar.gz")
	succeed(t, append([]string{"backup", "--data-dir", dir, "--output", file, "--metrics-token-file", filepath.Join(dir, "token")}, more...)...)
	return file
}

func TestBackupAndRestore(t *testing.T) {
	dir, original := installation(t)
	before, err := original.Read(t.Context()).Installation()
	if err != nil {
		t.Fatal(err)
	}
	file := backupOf(t, dir, "--files")
	to := filepath.Join(t.TempDir(), "deep", "restored")
	out := succeed(t, "restore", file, "--data-dir", to)
	for _, want := range []string{"generation 1", "ended 1 workspaces, 1 runs and 1 deployments", "audit head ", "authority.pem\n", "Where the settings authority-file"} {
		if !strings.Contains(out, want) {
			t.Errorf("it says %q, not %q", out, want)
		}
	}
	for name, want := range map[string]string{"authority.pem": "the key", "settings/metrics-token": scraper, "shared/notebook/1/a.txt": "a file"} {
		if b, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	wantFiles(t, to, "authority.pem", "lock", "settings", "shared", "weir.db")
	restored, err := store.Open(t.Context(), "", filepath.Join(to, "weir.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer restored.Close()
	in, err := restored.Read(t.Context()).Installation()
	if err != nil || in.UID != before.UID || in.Generation <= 1 || in.BackupAt == nil || in.RestoredAt == nil || before.Generation != 1 {
		t.Errorf("installation %+v, was %+v, %v", in, before, err)
	}
	wantEnded(t, restored)
	if w, err := original.Read(t.Context()).Workspace(store.AllProjects, 1); err != nil || w.State != models.StateRunning {
		t.Errorf("the original's workspace is %s, %v", w.State, err)
	}
}

// A backup of PostgreSQL, made while servers use it, can be restored to either database.
func TestBackupOfPostgres(t *testing.T) {
	dir, url := t.TempDir(), storetest.Postgres(t)
	db, err := store.Open(t.Context(), url, "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := migrateUp(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	fill(t, db)
	write(t, db, 3)
	for name, content := range map[string]string{"authority.pem": "the key", "token": scraper} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file := backupOf(t, dir, "--database-url", url)

	t.Run("to SQLite", func(t *testing.T) {
		to := t.TempDir()
		succeed(t, "restore", file, "--data-dir", to)
		wantFiles(t, to, "authority.pem", "lock", "settings", "weir.db")
		restored, err := store.Open(t.Context(), "", filepath.Join(to, "weir.db"))
		if err != nil {
			t.Fatal(err)
		}
		defer restored.Close()
		wantEnded(t, restored)
	})
	t.Run("to PostgreSQL", func(t *testing.T) {
		to, target := t.TempDir(), storetest.Postgres(t)
		succeed(t, "restore", file, "--data-dir", to, "--database-url", target)
		wantFiles(t, to, "authority.pem", "lock", "settings")
		restored, err := store.Open(t.Context(), target, "")
		if err != nil {
			t.Fatal(err)
		}
		defer restored.Close()
		wantEnded(t, restored)
		if code, _, says := admin("restore", file, "--data-dir", t.TempDir(), "--database-url", target); code != cli.ExitError || !strings.Contains(says, "not empty") {
			t.Errorf("over a restored one: %d %s", code, says)
		}
		if code, _, says := admin("restore", file, "--data-dir", to, "--database-url", storetest.Postgres(t)); code != cli.ExitError || !strings.Contains(says, "is not empty: it has authority.pem") {
			t.Errorf("over its files: %d %s", code, says)
		}
	})
	if w, err := db.Read(t.Context()).Workspace(store.AllProjects, 1); err != nil || w.State != models.StateRunning {
		t.Errorf("the original's workspace is %s, %v", w.State, err)
	}
}

// A database that another program has copied becomes a generation of its own, unless a server
// uses it.
func TestNewGeneration(t *testing.T) {
	dir, db := installation(t)
	lock, err := lockDataDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if code, _, says := admin("new-generation", "--data-dir", dir); code != cli.ExitError || !strings.Contains(says, "another server uses") {
		t.Errorf("beside a server: %d %s", code, says)
	}
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
	if out := succeed(t, "new-generation", "--data-dir", dir); !regexp.MustCompile(`^generation \d{13} of installation `).MatchString(out) {
		t.Errorf("it says %q", out)
	}
	w, err := db.Read(t.Context()).Workspace(store.AllProjects, 1)
	if err != nil || w.State != models.StateFailed || w.Reason.String() != "The database is a copy of another one." {
		t.Errorf("the workspace is %s: %s, %v", w.State, w.Reason, err)
	}
}

// Only the newest of the backups in a directory are kept, and nothing else is removed.
func TestKeepNewest(t *testing.T) {
	dir, _ := installation(t)
	to := t.TempDir()
	for _, name := range []string{"weir-20200101T000000Z.tar.gz", "weir-20210101T000000Z.tar.gz", "mine.tar.gz", "weir-old.tar.gz"} {
		if err := os.WriteFile(filepath.Join(to, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	succeed(t, "backup", "--data-dir", dir, "--output", to, "--keep", "2")
	entries, err := os.ReadDir(to)
	if err != nil || len(entries) != 4 || entries[1].Name() != "weir-20210101T000000Z.tar.gz" || entries[3].Name() != "weir-old.tar.gz" {
		t.Errorf("left are %v, %v", entries, err)
	}
	other := t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "weir-29990101T000000Z.tar.gz"), nil, 0o600); err != nil { // the clock was wrong once
		t.Fatal(err)
	}
	code, _, says := admin("backup", "--data-dir", dir, "--output", other, "--keep", "1")
	entries, err = os.ReadDir(other)
	if code == 0 || !strings.Contains(says, "is named after a later time") || err != nil || len(entries) != 2 {
		t.Errorf("beside a later backup: %d %s; left are %v, %v", code, says, entries, err)
	}
	if code, _, says := admin("backup", "--data-dir", dir, "--output", filepath.Join(to, "x"), "--keep", "2"); code != cli.ExitUsage || !strings.Contains(says, "--keep") {
		t.Errorf("without a directory: %d %s", code, says)
	}
}

// What killed backups have left is removed a day later, unless one goes on.
func TestAbandonedBackups(t *testing.T) {
	dir, _ := installation(t)
	to := t.TempDir()
	left, parts := filepath.Join(to, ".weir-backup-1"), filepath.Join(to, ".weir-backup-2")
	if err := errors.Join(os.Mkdir(left, 0o700), os.WriteFile(filepath.Join(left, "weir.db"), nil, 0o600), os.WriteFile(parts, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		old  []string
		left int
	}{{nil, 2}, {[]string{left}, 2}, {[]string{left, parts}, 0}} {
		for _, name := range c.old {
			if err := os.Chtimes(name, time.Time{}, time.Now().Add(-25*time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
		succeed(t, "backup", "--data-dir", dir, "--output", filepath.Join(t.TempDir(), "elsewhere.tar.gz"))
		succeed(t, "backup", "--data-dir", dir, "--output", filepath.Join(to, fmt.Sprint(len(c.old), ".tar.gz")))
		if got, err := filepath.Glob(filepath.Join(to, ".weir-backup-*")); err != nil || len(got) != c.left {
			t.Errorf("%d are old: left are %v, %v", len(c.old), got, err)
		}
	}
}

// wantEnded checks that nothing of a restored database goes on.
func wantEnded(t *testing.T, db *store.Store) {
	t.Helper()
	raw, err := db.SQL()
	if err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		"SELECT count(*) FROM workspaces WHERE state = 'failed' AND runtime_state IS NULL":               1,
		"SELECT count(*) FROM runs WHERE state = 'ended'":                                                1,
		"SELECT count(*) FROM deployments WHERE state = 'failed'":                                        1,
		"SELECT count(*) FROM deployment_parts WHERE state = 'ended'":                                    1,
		"SELECT count(*) FROM holders WHERE phase = 'ended' AND ended_at IS NOT NULL":                    3,
		"SELECT count(*) FROM shares WHERE until_at IS NULL":                                             0,
		"SELECT count(*) FROM sessions":                                                                  0,
		"SELECT count(*) FROM visits":                                                                    0,
		"SELECT count(*) FROM one_time_tokens":                                                           0,
		"SELECT count(*) FROM leaders":                                                                   0,
		"SELECT count(*) FROM servers":                                                                   0,
		"SELECT count(*) FROM access_tokens":                                                             1,
		"SELECT count(*) FROM deliveries WHERE key = 'k' AND state = 'given_up'":                         1,
		"SELECT count(*) FROM deliveries WHERE finished_at IS NULL AND kind = 'workspace.failed'":        1,
		"SELECT count(*) FROM notifications WHERE user_id = 1 AND kind = 'workspace.failed'":             1,
		"SELECT count(*) FROM audit_entries WHERE action = 'restore' AND object = 'installation'":        1,
		"SELECT count(*) FROM workspace_events WHERE message LIKE '%restored-from-a-backup%'":            1,
		"SELECT count(*) FROM installation WHERE generation > 1 AND backup_at <= restored_at AND id = 1": 1,
	} {
		var got int
		if err := raw.QueryRow(query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, %v; want %d", query, got, err, want)
		}
	}
	if w, err := db.Read(t.Context()).Workspace(store.AllProjects, 1); err != nil || !strings.Contains(w.Reason.String(), "restored from a backup of 20") {
		t.Errorf("the reason is %q, %v", w.Reason, err)
	}
}

func wantFiles(t *testing.T, dir string, names ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if err != nil || strings.Join(got, " ") != strings.Join(names, " ") {
		t.Errorf("%s has %v, not %v; %v", dir, got, names, err)
	}
}

// Each restore is a generation of its own, also that of a backup of a restored database.
func TestGenerationsGrow(t *testing.T) {
	dir, _ := installation(t)
	last := int64(1)
	for range 2 {
		to := t.TempDir() // it exists, but is empty
		succeed(t, "restore", backupOf(t, dir), "--data-dir", to)
		db, err := store.Open(t.Context(), "", filepath.Join(to, "weir.db"))
		if err != nil {
			t.Fatal(err)
		}
		in, err := db.Read(t.Context()).Installation()
		if err != nil || in.Generation <= last {
			t.Errorf("generation %d after %d, %v", in.Generation, last, err)
		}
		last = in.Generation
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(to, "token"), []byte(scraper), 0o600); err != nil {
			t.Fatal(err)
		}
		dir = to
	}
}

// Two restores of one backup do not take each other's workspaces for their own.
func TestGenerationsDiffer(t *testing.T) {
	dir, _ := installation(t)
	file, generations := backupOf(t, dir), map[string]bool{}
	for range 2 {
		out := succeed(t, "restore", file, "--data-dir", t.TempDir())
		generations[regexp.MustCompile(`generation \d+`).FindString(out)] = true
	}
	if len(generations) != 2 {
		t.Errorf("two restores are %v", generations)
	}
}

// A backup is consistent while a server writes.
func TestBackupWhileWriting(t *testing.T) {
	dir, db := installation(t)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		var err error
		for ctx.Err() == nil && err == nil {
			err = db.InTx(context.WithoutCancel(ctx), func(q *store.Queries) error {
				return q.PutAudit(models.AuditEntry{At: q.Now(), Actor: "a", Via: "session"})
			})
		}
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	file := backupOf(t, dir)
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	succeed(t, "restore", file, "--data-dir", filepath.Join(t.TempDir(), "restored")) // verifies the audit log
}

// On a full disk, there is an error and nothing else.
func TestBackupToAFullDisk(t *testing.T) {
	dir, db := installation(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a small disk")
	}
	copied := filepath.Join(t.TempDir(), "weir.db")
	if err := db.BackUp(t.Context(), copied); err != nil {
		t.Fatal(err)
	}
	database, err := os.Stat(copied)
	if err != nil {
		t.Fatal(err)
	}
	random := make([]byte, 200<<10) // that cannot be compressed
	if _, err := rand.Read(random); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "shared", "random"), random, 0o600); err != nil {
		t.Fatal(err)
	}
	disk := t.TempDir()
	for _, size := range []int64{64 << 10, database.Size() + 100<<10} { // too little for the database, and for it and the archive
		if err := unix.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprint("size=", size)); err != nil {
			t.Fatal(err)
		}
		code, _, says := admin("backup", "--data-dir", dir, "--files", "--output", filepath.Join(disk, "weir.tar.gz"))
		if code != cli.ExitError || !strings.Contains(says, "no backup was made") {
			t.Errorf("%d bytes: %d %s", size, code, says)
		}
		wantFiles(t, disk)
		if err := unix.Unmount(disk, unix.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
}

func TestBackupRefuses(t *testing.T) {
	dir, _ := installation(t)
	if code, _, says := admin("backup", "--data-dir", dir); code != cli.ExitUsage || !strings.Contains(says, "--output is required") {
		t.Errorf("%d %s", code, says)
	}
	out := filepath.Join(t.TempDir(), "weir.tar.gz")
	if err := os.WriteFile(out, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, says := admin("backup", "--data-dir", dir, "--output", out); code != cli.ExitError || !strings.Contains(says, "not overwritten") {
		t.Errorf("%d %s", code, says)
	}
	if b, err := os.ReadFile(out); err != nil || string(b) != "mine" {
		t.Errorf("it is %q, %v", b, err)
	}
	empty := t.TempDir()
	if code, _, says := admin("backup", "--data-dir", empty, "--output", out+"2"); code != cli.ExitError || !strings.Contains(says, "no database found") {
		t.Errorf("%d %s", code, says)
	}
	if left, err := fs.Glob(os.DirFS(filepath.Dir(out)), ".weir-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
