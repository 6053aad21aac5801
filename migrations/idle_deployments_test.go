package migrations_test

import (
	"testing"

	"weir/migrations"
	"weir/models/store/storetest"
)

// Deployments keep their states, and one that is idle is ended by an earlier version.
func TestIdleDeployments(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			db := sqlOf(t, storetest.OpenEmpty(t, dialect))
			up(t, db, dialect)
			if err := migrations.DownTo(t.Context(), db, dialect, 46); err != nil {
				t.Fatal(err)
			}
			for _, row := range rows {
				if _, err := db.Exec("INSERT INTO " + row); err != nil {
					t.Fatalf("%s: %v", row, err)
				}
			}
			is := func(state, phase string) {
				t.Helper()
				var got, held string
				err := db.QueryRow("SELECT state, phase FROM deployments JOIN holders ON holders.id = holder_id").Scan(&got, &held)
				if err != nil || got != state || held != phase {
					t.Errorf("it is %s and %s, not %s and %s: %v", got, held, state, phase, err)
				}
			}
			up(t, db, dialect)
			is("serving", "in_use")
			if n := count(t, db, "deployment_parts"); n != 1 {
				t.Errorf("it has %d parts", n)
			}
			for _, state := range []string{"idle", "lost"} {
				if _, err := db.Exec("UPDATE deployments SET state = '" + state + "'"); (err == nil) != (state == "idle") {
					t.Errorf("%s: %v", state, err)
				}
			}
			if err := migrations.DownTo(t.Context(), db, dialect, 46); err != nil {
				t.Fatal(err)
			}
			is("stopping", "ending")
		})
	}
}
