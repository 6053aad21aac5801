package migrations_test

import (
	"testing"

	"weir/migrations"
	"weir/models/store/storetest"
)

// Going back drops what the older version cannot read, and nothing else.
func TestInvitationsGoAndTheRestStays(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			db := sqlOf(t, storetest.OpenEmpty(t, dialect))
			up(t, db, dialect)
			fill(t, db)
			check := func(when string, tokens, deliveries int) {
				t.Helper()
				if n, m := count(t, db, "one_time_tokens"), count(t, db, "deliveries"); n != tokens || m != deliveries {
					t.Errorf("%s: %d tokens and %d deliveries, want %d and %d", when, n, m, tokens, deliveries)
				}
			}
			check("filled", 3, 2)
			if err := migrations.DownTo(t.Context(), db, dialect, 16); err != nil {
				t.Fatal(err)
			}
			check("down", 1, 1)
			up(t, db, dialect)
			check("up again", 1, 1)
			if n := count(t, db, "invitations"); n != 0 {
				t.Errorf("%d invitations", n)
			}
			if _, err := db.Exec("INSERT INTO one_time_tokens (hash, purpose, expires_at) VALUES ('x', 'other', " + day + ")"); err == nil {
				t.Error("an unknown purpose was taken")
			}
		})
	}
}
