package migrations_test

import (
	"testing"

	"weir/migrations"
	"weir/models/store/storetest"
)

// Deployments of before generate text. An earlier version ends those that do something else.
func TestDeploymentTasks(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			for task, want := range map[string]string{"text-generation": "serving in_use", "image-classification": "stopping ending"} {
				db := sqlOf(t, storetest.OpenEmpty(t, dialect))
				up(t, db, dialect)
				if err := migrations.DownTo(t.Context(), db, dialect, 47); err != nil {
					t.Fatal(err)
				}
				for _, row := range rows {
					if _, err := db.Exec("INSERT INTO " + row); err != nil {
						t.Fatalf("%s: %v", row, err)
					}
				}
				up(t, db, dialect)
				if n := count(t, db, "deployments WHERE task = 'text-generation'"); n != 1 {
					t.Errorf("%d generate text", n)
				}
				if _, err := db.Exec("UPDATE deployments SET updating = TRUE, fallback_id = id, task = '" + task + "'"); err != nil {
					t.Fatal(err)
				}
				if err := migrations.DownTo(t.Context(), db, dialect, 47); err != nil {
					t.Fatal(err)
				}
				var state, phase string
				err := db.QueryRow("SELECT state, phase FROM deployments JOIN holders ON holders.id = holder_id").Scan(&state, &phase)
				if err != nil || state+" "+phase != want {
					t.Errorf("%s is %s and %s, %v", task, state, phase, err)
				}
				if n := count(t, db, "deployments WHERE updating OR fallback_id IS NOT NULL"); n != 0 {
					t.Errorf("%d go on", n)
				}
			}
		})
	}
}

// An earlier version stops deployments that embed texts, and lets the others go on.
func TestTextEmbedding(t *testing.T) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		t.Run(dialect, func(t *testing.T) {
			for task, want := range map[string]string{"image-classification": "serving in_use image-classification", "text-embedding": "stopping ending text-generation"} {
				db := sqlOf(t, storetest.OpenEmpty(t, dialect))
				up(t, db, dialect)
				for _, row := range rows {
					if _, err := db.Exec("INSERT INTO " + row); err != nil {
						t.Fatalf("%s: %v", row, err)
					}
				}
				if _, err := db.Exec("UPDATE deployments SET task = '" + task + "'"); err != nil {
					t.Fatal(err)
				}
				if err := migrations.DownTo(t.Context(), db, dialect, 49); err != nil {
					t.Fatal(err)
				}
				read := func() string {
					var state, phase, kept string
					if err := db.QueryRow("SELECT state, phase, task FROM deployments JOIN holders ON holders.id = holder_id").Scan(&state, &phase, &kept); err != nil {
						t.Fatal(err)
					}
					return state + " " + phase + " " + kept
				}
				if got := read(); got != want {
					t.Errorf("%s: %s, want %s", task, got, want)
				}
				if _, err := db.Exec("UPDATE deployments SET task = 'text-embedding'"); err == nil {
					t.Error("the earlier version embeds texts")
				}
				if up(t, db, dialect); read() != want {
					t.Errorf("%s: %s, want %s", task, read(), want)
				}
				if _, err := db.Exec("UPDATE deployments SET task = 'speech'"); err == nil {
					t.Error("any task is accepted")
				}
			}
		})
	}
}
