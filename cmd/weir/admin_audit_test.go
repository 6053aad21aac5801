package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"weir/cmd/weir/cli"
	"weir/migrations"
	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// verify runs weir admin verify-audit on a database.
func verify(args ...string) (code int, out, says string) {
	var stdout, stderr bytes.Buffer
	code = weir(append([]string{"admin", "verify-audit"}, args...), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func TestVerifyAudit(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			dir, url := t.TempDir(), ""
			if dialect == "postgres" {
				url = storetest.Postgres(t)
			}
			where := []string{"--data-dir", dir, "--database-url", url}
			missing := map[string]string{"sqlite": "no database found", "postgres": "weir migrate"}[dialect]
			if code, _, says := verify(where...); code != cli.ExitError || !strings.Contains(says, missing) {
				t.Errorf("without a schema: %d %s", code, says)
			}
			store, err := store.Open(t.Context(), url, filepath.Join(dir, "weir.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			if err := migrateUp(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			if code, out, says := verify(where...); code != cli.ExitOK || out != "0 entries, intact\n" {
				t.Errorf("an empty audit: %d %s %s", code, out, says)
			}
			write(t, store, 3)
			code, out, says := verify(where...)
			_, head, found := strings.Cut(strings.TrimSpace(out), "\nhead ")
			if code != cli.ExitOK || !strings.HasPrefix(out, "3 entries, intact\n") || !found {
				t.Fatalf("%d %s %s", code, out, says)
			}
			write(t, store, 2)
			if code, out, says := verify(append(where, "--expect", head)...); code != cli.ExitOK || !strings.HasPrefix(out, "5 entries") {
				t.Errorf("an earlier head: %d %s %s", code, out, says)
			}
			if code, _, says := verify(append(where, "--expect", "3")...); code != cli.ExitUsage || !strings.Contains(says, "HASH:NUMBER") {
				t.Errorf("no head: %d %s", code, says)
			}
			// Back and forth, every entry is chained anew, without what the old
			// schema does not know: the head that was kept tells.
			db, err := store.SQL()
			if err != nil {
				t.Fatal(err)
			}
			if err := migrations.DownTo(t.Context(), db, dialect, 4); err != nil {
				t.Fatal(err)
			}
			if err := migrateUp(t.Context(), store); err != nil {
				t.Fatal(err)
			}
			if code, out, says := verify(where...); code != cli.ExitOK || !strings.HasPrefix(out, "5 entries") {
				t.Errorf("a chain made anew: %d %s %s", code, out, says)
			}
			if code, out, says := verify(append(where, "--expect", head)...); code != cli.ExitError || out != "" || !strings.Contains(says, "broken at entry 3") {
				t.Errorf("a head that is gone: %d %s %s", code, out, says)
			}
		})
	}
}

func write(t *testing.T, db *store.Store, n int) {
	t.Helper()
	storetest.InTx(t, db, func(q *store.Queries) error {
		for range n {
			if err := q.PutAudit(models.AuditEntry{At: q.Now(), Actor: "a", Via: "session"}); err != nil {
				return err
			}
		}
		return nil
	})
}
