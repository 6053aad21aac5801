package web

import (
	"errors"
	"slices"
	"testing"

	"weir/models"
)

func TestBarInWords(t *testing.T) {
	d := myDevice()
	want := "gpu-node-01 GPU 0 (simulated). vision (yours): 50 cores, 40 GiB; another project: 30 cores, 24 GiB; 20 cores and 16 GiB free"
	if got := d.describe(t.Context()); got != want {
		t.Errorf("the bar reads\n%q, want\n%q", got, want)
	}
	if d = newShare(50); d.Held() != 30 {
		t.Errorf("a share that would be taken counts as held: %d", d.Held())
	}
	var at []string
	for _, s := range d.segments() {
		at = append(at, s.X+"+"+s.W)
	}
	if want := []string{"0%+30.00%", "30.00%+50.00%"}; !slices.Equal(at, want) {
		t.Errorf("segments lie at %v, want %v", at, want)
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		part, whole int64
		want        string
	}{{0, 0, "0%"}, {1, 0, "0%"}, {-1, 10, "0%"}, {1, 3, "33.33%"}, {30, 10, "100.00%"}} {
		if got := percent(c.part, c.whole); got != c.want {
			t.Errorf("percent(%d, %d) = %s, want %s", c.part, c.whole, got, c.want)
		}
	}
}

func TestLaunchSaysWhatItDoes(t *testing.T) {
	waiting := launchWith(short)
	waiting.Form.Values["when_short"] = "wait"
	onlyWait := launchWith(short)
	onlyWait.Answer.Fewer = nil
	for _, c := range []struct {
		name             string
		v                LaunchView
		headline, button string
	}{
		{"granted", launchWith(granted), "All 50 cores are free now", "Launch with 50 cores"},
		{"short", launchWith(short), "Only 30 of 50 cores are free now", "Start now with 30 cores"},
		{"short, wait chosen", waiting, "Only 30 of 50 cores are free now", "Wait for 50 cores"},
		{"nothing to have now", onlyWait, "Only 30 of 50 cores are free now", "Wait for 50 cores"},
		{"no GPU", launchWith(Answer{Outcome: models.OutcomeGranted}), "It starts now, without a GPU", "Launch without a GPU"},
		{"refused", launchWith(Answer{Outcome: models.OutcomeRefused, AskedCores: 200}), "This cannot be launched", "Launch with 200 cores"},
	} {
		if got := c.v.Answer.headline(t.Context()); got != c.headline {
			t.Errorf("%s: the headline is %q, want %q", c.name, got, c.headline)
		}
		if got := c.v.button(t.Context()); got != c.button {
			t.Errorf("%s: the button says %q, want %q", c.name, got, c.button)
		}
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
	if !v.chosen(0) {
		t.Error("when the one asked for is not offered, the best is not chosen")
	}
}

func TestFormRefuse(t *testing.T) {
	f := Form{Values: map[string]string{"name": "x"}, Version: 3}
	got := f.Refuse(models.InvalidFields(models.Field{Name: "name", Reason: models.Say("first")}, models.Field{Name: "name", Reason: models.Say("second")}))
	if got.Value("name") != "x" || got.Version != 3 || got.Errors["name"].String() != "first" {
		t.Errorf("a refused form came back as %+v", got)
	}
	if got := f.Refuse(errors.New("disk full at sector 7")); got.Message.String() != "Something went wrong here. Nothing was changed." {
		t.Errorf("an internal error shows as %q", got.Message)
	}
}

func TestColour(t *testing.T) {
	for n := int64(-7); n < 20; n++ {
		if c := Colour(n); c < 1 || c > 6 {
			t.Errorf("Colour(%d) = %d", n, c)
		}
	}
}
