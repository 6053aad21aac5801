package store_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func TestTextSurvivesTheDatabase(t *testing.T) {
	texts := []models.Text{
		{},
		models.Say("plain"),
		models.Say("100 % of it"), // no arguments: no verbs
		models.Say("%d and %d", 1, int64(1)<<60),
		models.Say("%.1f of %s", 1.5, "a thing"),
		models.Say("%s, %s", "数据", "line\nbreak \x00 and ' quote"),
		models.Say("outer (%s)", models.Say("inner %d (%s)", 7, models.Say("innermost"))),
		models.Say("%s", ""),
		models.Say("%s", models.StateRunning), // whatever prints as a string
	}
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		for _, text := range texts {
			w.event(t, text)
		}
		events, err := s.Read(t.Context()).WorkspaceEvents(w.workspace.ID)
		if err != nil || len(events) != len(texts)+1 {
			t.Fatalf("%d events, %v", len(events), err)
		}
		for i, text := range texts {
			if got := events[i+1].Message; got.String() != text.String() || got.Format != text.Format {
				t.Errorf("%q became %q", text, got)
			}
		}
	})
}

// A row keeps the key of a sentence, so that its wording can change.
func TestTextsAreStoredByKey(t *testing.T) {
	raw, err := json.Marshal(models.Say("%s: %s", models.Say("GPU cores"), "5"))
	if err != nil || strings.Contains(string(raw), "GPU cores") {
		t.Fatalf("%s, %v", raw, err)
	}
	var again models.Text
	if err := json.Unmarshal(raw, &again); err != nil || again.String() != "GPU cores: 5" || again.In(models.Chinese) != "GPU 核：5" {
		t.Errorf("%s reads as %q and %q, %v", raw, again, again.In(models.Chinese), err)
	}
}

// Rows from before there were keys have English formats of their time.
func TestFormerTextsReadAsTheyAreWordedNow(t *testing.T) {
	var text models.Text
	if err := text.Scan(`{"f":"No GPUs were requested."}`); err != nil || text.String() != "No GPUs were requested." {
		t.Errorf("%q, %v", text, err)
	}
	if err := text.Scan(`{"f":"never in a catalog %s","a":[{"s":"x"}]}`); err != nil || text.String() != "never in a catalog x" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTextsCount(t *testing.T) {
	for n, want := range map[int64]string{0: "in about 0 days", 1: "in about 1 day", 2: "in about 2 days"} {
		if got := models.Say("in about %d days", n).String(); got != want {
			t.Errorf("%d: %q", n, got)
		}
	}
}

// An unlimited amount is a sign in tables and a word in sentences, also in stored ones.
func TestUnlimitedInSentences(t *testing.T) {
	amount := models.Quantity("cpu_milli", models.Unlimited)
	text := models.Say("%s: %s", "CPU", models.Say("%s CPU, enforced by the system (cgroup)", amount))
	row, err := text.Value()
	var read models.Text
	if err := errors.Join(err, read.Scan(row)); err != nil {
		t.Fatal(err)
	}
	if amount != "∞" || text.String() != "CPU: unlimited CPU, enforced by the system (cgroup)" || read.In(models.Chinese) != text.In(models.Chinese) || !strings.Contains(read.In(models.Chinese), "不限") {
		t.Errorf("%q, %q, %q", amount, text, read.In(models.Chinese))
	}
}

// A time in a stored text is shown in the reader's zone, a date as it is, and servers from
// before there were times read it as text.
func TestTimesInTexts(t *testing.T) {
	stop, day := time.Date(2026, 11, 28, 23, 30, 0, 0, time.UTC), time.Date(2026, 11, 28, 0, 0, 0, 0, time.UTC)
	row, err := models.Say("%s: %s", models.Moment(stop), models.Say("%s: %s", models.Moment(day), models.EndMoment(day))).Value()
	var read models.Text
	if err := errors.Join(err, read.Scan(row)); err != nil {
		t.Fatal(err)
	}
	if got := read.String(); got != "2026-11-28 23:30 UTC: 2026-11-28: 2026-11-27" {
		t.Errorf("in UTC: %s", got)
	}
	if got := read.InZone(models.English, models.TimeZone("America/St_Johns")); got != "2026-11-28 20:00 UTC-03:30: 2026-11-28: 2026-11-27" {
		t.Errorf("in Newfoundland: %s", got)
	}
	if !strings.Contains(row.(string), `"s":"2026-11-28 23:30 UTC"`) {
		t.Errorf("stored as %s", row)
	}
	var old models.Text
	if err := old.Scan(`{"f":"%s: %s","a":[{"s":"a"},{"s":"2026-11-28 23:30 UTC"}]}`); err != nil ||
		old.InZone(models.English, models.TimeZone("Asia/Shanghai")) != "a: 2026-11-28 23:30 UTC" {
		t.Errorf("a row of an earlier server: %q, %v", old, err)
	}
	if zone := models.TimeZone("Nowhere/At_All"); zone != time.UTC {
		t.Errorf("an unknown zone is %s", zone)
	}
}

func TestTextRefusesWhatItDidNotStore(t *testing.T) {
	for _, src := range []any{7, "no JSON", []byte("{")} {
		var text models.Text
		if err := text.Scan(src); err == nil {
			t.Errorf("%v was read as %q", src, text)
		}
	}
	for _, src := range []any{nil, "", []byte(nil), `{"f":"x %s","a":[{}]}`} {
		text := models.Say("old")
		if err := text.Scan(src); err != nil || strings.Contains(text.String(), "%!") {
			t.Errorf("%v: %q, %v", src, text, err)
		}
	}
}
