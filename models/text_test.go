package models_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"weir/models"
	"weir/models/modelstest"
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
	modelstest.Each(t, func(t *testing.T, s *models.Store) {
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

func TestTextTranslatesItsParts(t *testing.T) {
	text := models.Say("%d of %s", 3, models.Say("cores"))
	german := map[string]string{"%d of %s": "von %[2]s %[1]d", "cores": "Kernen"}
	if got := text.Render(func(s string) string { return german[s] }); got != "von Kernen 3" {
		t.Error(got)
	}
	raw, err := json.Marshal(text)
	var again models.Text
	if err := errors.Join(err, json.Unmarshal(raw, &again)); err != nil || again.String() != "3 of cores" || again.Format != text.Format {
		t.Errorf("%s reads as %q, %v", raw, again, err)
	}
	if !(models.Text{}).Empty() || text.Empty() {
		t.Error("Empty is wrong")
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
