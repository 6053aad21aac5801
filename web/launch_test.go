package web

import (
	"strings"
	"testing"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

func TestLaunchSaysWhatItDoes(t *testing.T) {
	waiting := launchWith(short)
	waiting.Form.Values["when_insufficient"] = "wait"
	onlyWait := launchWith(short)
	onlyWait.Decision.Fewer = nil
	for _, c := range []struct {
		name             string
		v                LaunchView
		headline, button string
	}{
		{"granted", launchWith(granted), "All 50 GPU cores are available now", "Launch with 50 GPU cores"},
		{"short", launchWith(short), "Only 30 of 50 GPU cores are available now", "Start now with 30 GPU cores"},
		{"short, wait chosen", waiting, "Only 30 of 50 GPU cores are available now", "Wait for 50 GPU cores"},
		{"nothing to have now", onlyWait, "Only 30 of 50 GPU cores are available now", "Wait for 50 GPU cores"},
		{"not yet decided", LaunchView{Decision: Decision{RequestedCores: 800}}, "Launch", "Launch workspace"},
		{"no GPU", launchWith(Decision{Outcome: models.OutcomeGranted}), "Starts immediately, without a GPU", "Launch without a GPU"},
		{"refused", launchWith(Decision{Outcome: models.OutcomeRefused, RequestedCores: 200}), "Cannot launch this workspace", "Launch with 200 GPU cores"},
	} {
		if got := c.v.Decision.headline(t.Context()); got != c.headline {
			t.Errorf("%s: the headline is %q, want %q", c.name, got, c.headline)
		}
		if got := c.v.button(t.Context()); got != c.button {
			t.Errorf("%s: the button says %q, want %q", c.name, got, c.button)
		}
	}
}

// An estimated start is counted down, as other times until something happens.
func TestEstimatedStartCountsDown(t *testing.T) {
	for name, page := range map[string]templ.Component{"launch": LaunchPage(launchWith(short)), "run": RunPage(sampleRun(models.RunQueued))} {
		text := string(render(t, sample{name: name, page: page, by: &li}, models.English))
		want := `datetime="` + timestamp(now.Add(14*time.Minute)) + `" data-time="countdown" data-format="Estimated start: in %s." data-soon="Estimated start: within a minute.">Estimated start: in 14`
		if !strings.Contains(text, want) {
			t.Errorf("%s: %s", name, around([]byte(text), "Estimated start"))
		}
	}
	passed := sampleRun(models.RunQueued)
	passed.Starts.At, passed.Starts.Text = now.Add(-time.Minute), models.Say("within a minute")
	text := string(render(t, sample{name: "run", page: RunPage(passed), by: &li}, models.English))
	if !strings.Contains(text, "Estimated start: within a minute.") || strings.Contains(text, "Estimated start: in") {
		t.Errorf("when it has passed: %s", around([]byte(text), "Estimated start"))
	}
}

func TestChosenEnvironment(t *testing.T) {
	v := sampleLaunch()
	if !v.chosen(0) || v.chosen(1) {
		t.Error("the best environment is not chosen by itself")
	}
	v.Form.Values["environment_id"] = "2"
	if v.chosen(0) || !v.chosen(1) {
		t.Error("the environment asked for is not chosen")
	}
	v.Form.Values["environment_id"] = "99"
	if v.chosen(0) || v.chosen(1) {
		t.Error("another one than the one asked for is chosen")
	}
}
