package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"weir/models/store/storetest"
)

// A server moves from SQLite to PostgreSQL while a workspace runs.
func TestMigrateCopy(t *testing.T) {
	t.Parallel()
	database := storetest.Postgres(t) // dropped after the end of the server
	s := newServer(t, options{})
	team := s.team("patient", share, "ada")
	ada := team.Members[0]
	w := ada.running(team.Project, "nb")
	nb := ada.open(w.ID)
	if got := nb.execute("kept = 'kept'"); got != "" {
		t.Fatalf("the cell printed %q", got)
	}
	refused := func(reason string, args ...string) {
		t.Helper()
		code, _, stderr := weir(t, "", nil, append([]string{"migrate", "copy"}, args...)...)
		if code == 0 || !strings.Contains(stderr, reason) {
			t.Errorf("%v: exit code %d, and it says %q, not %q", args, code, stderr, reason)
		}
	}
	from, to := "--from=sqlite:"+s.dir, "--to="+database
	refused("another server uses the data directory "+s.dir, from, to)
	s.stop()
	refused("has version 0", from, to)
	refused("must be sqlite:DIR", "--from="+s.dir, to)
	refused("must be the URL of a PostgreSQL database", from)
	refused("no database found", "--from=sqlite:"+t.TempDir(), to)

	env := []string{"WEIR_DATABASE_URL=" + database}
	for _, args := range [][]string{{"migrate"}, {"migrate", "copy", from}, {"admin", "verify-audit"}} {
		if code, stdout, stderr := weir(t, "", env, args...); code != 0 {
			t.Fatalf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	refused("the target database is not empty", from, to)
	s.opts.database = database
	s.start()
	signIn := url.Values{"email": {"operator@example.org"}, "password": {password}}
	if got := newCurl(t).do("--data", signIn.Encode(), "--header", "Origin: "+s.url, s.url+"/signin"); got.status != http.StatusSeeOther {
		t.Errorf("the sign-in responds %d\n%s", got.status, got.body)
	}
	ada.await(w.ID, "running", patience)
	if got := nb.execute("print(kept)"); got != "kept\n" {
		t.Errorf("the cell printed %q", got)
	}
}
