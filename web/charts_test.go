package web

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
)

func TestChartPath(t *testing.T) {
	for _, c := range []struct {
		values []int64
		top    int64
		want   string
	}{
		{nil, 10, ""},
		{[]int64{-1, -1}, 10, ""},
		{[]int64{0, 10, 5}, 10, "M0 100H200V0H400V50H600"},
		{[]int64{5, -1, 5}, 10, "M0 50H200M400 50H600"}, // a gap stays a gap
		{[]int64{20}, 10, "M0 0H600"},                   // what is too high stays inside
		{[]int64{3}, 0, "M0 0H600"},
	} {
		if got := (Chart{Top: c.top}).path(Line{Values: c.values}); got != c.want {
			t.Errorf("%v of %d: %q, want %q", c.values, c.top, got, c.want)
		}
	}
}

func TestSlots(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	bucket := func(minute int, samples, sum, most int64) models.Telemetry {
		return models.Telemetry{At: from.Add(time.Duration(minute) * time.Minute), Samples: samples, UtilisationSum: sum, UtilisationMax: most,
			MemorySum: 2 * sum, MemoryMax: most, TemperatureSum: sum, TemperatureMax: most, PowerSum: sum, PowerMax: most}
	}
	slots := Slots([]models.Telemetry{bucket(-1, 5, 500, 100), bucket(0, 1, 10, 10), bucket(9, 3, 90, 50), bucket(20, 2, 40, 30), bucket(60, 1, 99, 99)}, from, from.Add(time.Hour), 6)
	want := []Slot{{Samples: 4, Mean: Amounts{25, 50, 25, 25}, Most: Amounts{50, 50, 50, 50}}, {}, {Samples: 2, Mean: Amounts{20, 40, 20, 20}, Most: Amounts{30, 30, 30, 30}}, {}, {}, {}}
	for i := range want {
		want[i].At = from.Add(time.Duration(i) * 10 * time.Minute)
	}
	if !slices.Equal(slots, want) {
		t.Errorf("slots are\n%+v, want\n%+v", slots, want)
	}
	chartLines := lines(slots, func(a Amounts) int64 { return a.Utilisation })
	if want := []int64{25, -1, 20, -1, -1, -1}; !slices.Equal(chartLines[1].Values, want) || largest(chartLines) != 50 {
		t.Errorf("the lines are %+v, want the mean %v", chartLines, want)
	}
	if got := (DeviceView{Slots: slots}).measuredSlots(); len(got) != 2 || got[0].At.Before(got[1].At) {
		t.Errorf("listed are %+v", got)
	}
}

// The values of a step are those of all lines that have one there.
func TestChartValues(t *testing.T) {
	c := Chart{Say: percentWords, Lines: []Line{{Label: "limit", Values: []int64{100, 100, -1}}, {Values: []int64{7, -1, -1}}}}
	if got, err := c.values(); err != nil || got != `["limit 100%\n7%","limit 100%",""]` {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := (Chart{}).values(); err != nil || got != "[]" {
		t.Errorf("without lines: %s, %v", got, err)
	}
}

func TestWorkspaceSteps(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 10, 0, time.UTC)
	at := func(ago time.Duration, cpu int64, gpu *int64) models.WorkspaceTelemetry {
		return models.WorkspaceTelemetry{At: now.Add(-ago), CPUMilli: cpu, MemoryMiB: 10 * cpu, GPUPercent: gpu}
	}
	v := WorkspaceView{Now: now, Telemetry: []models.WorkspaceTelemetry{at(2*time.Hour, 9, nil), at(35*time.Second, 2, nil), at(40*time.Second, 4, new(int64(50))), at(5*time.Second, 6, nil)}}
	steps := v.steps()
	if n := len(steps); n != workspaceSteps || !steps[n-1].At.Equal(now.Truncate(workspaceStep)) {
		t.Fatalf("%d steps, the last from %s", n, steps[n-1].At)
	}
	got := measuredSteps(steps)
	want := []workspaceUse{{steps[workspaceSteps-1].At, 6, 60, -1}, {steps[workspaceSteps-2].At, 3, 30, 50}}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// The scale names half of the largest amount where that is a whole amount.
func TestChartScale(t *testing.T) {
	from := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
	for top, half := range map[int64]string{100: ">50%<", 7: ""} {
		var b strings.Builder
		c := Chart{Top: top, Say: percentWords, From: from, To: from.Add(24 * time.Hour)}
		if err := chart(c).Render(t.Context(), &b); err != nil {
			t.Fatal(err)
		}
		if got := b.String(); strings.Contains(got, "chart-half") != (half != "") || !strings.Contains(got, half) || !strings.Contains(got, "2026-03-01 12:00 UTC") {
			t.Errorf("the chart up to %d%% is %s", top, got)
		}
	}
}
