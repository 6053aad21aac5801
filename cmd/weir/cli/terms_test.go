package cli

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

func TestParseWindow(t *testing.T) {
	for _, c := range []struct {
		text string
		want models.Window
		says string // of the error
	}{
		{"mon-fri 20:00-08:00", models.Window{Days: []int{1, 2, 3, 4, 5}, From: "20:00", To: "08:00"}, ""},
		{"  Sat,SUN   9:05-17:30 ", models.Window{Days: []int{0, 6}, From: "09:05", To: "17:30"}, ""},
		{"daily 00:00-24:00", models.Window{Days: []int{0, 1, 2, 3, 4, 5, 6}, From: "00:00", To: "00:00"}, ""},
		{"fri-mon,sat 22:00-06:00", models.Window{Days: []int{0, 1, 5, 6}, From: "22:00", To: "06:00"}, ""},
		{"wed 12:00-13:00", models.Window{Days: []int{3}, From: "12:00", To: "13:00"}, ""},
		{"mon-fri", models.Window{}, "days and hours"},
		{"", models.Window{}, "days and hours"},
		{"mon 08:00 - 17:00", models.Window{}, "days and hours"},
		{"mon 08:00", models.Window{}, "start and an end"},
		{"mon 25:00-08:00", models.Window{}, `"25:00"`},
		{"mon 24:00-08:00", models.Window{}, `"24:00"`},
		{"mon 08:00-8", models.Window{}, `"8"`},
		{"monday 08:00-17:00", models.Window{}, `"monday"`},
		{"mon- 08:00-17:00", models.Window{}, `"mon-"`},
		{"mon,,tue 08:00-17:00", models.Window{}, `""`},
	} {
		got, err := parseWindow(c.text)
		switch {
		case c.says == "" && (err != nil || !reflect.DeepEqual(got, c.want)):
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)):
			t.Errorf("%q: %v; want %s", c.text, err, c.says)
		}
	}
}

func TestParseHours(t *testing.T) {
	if hours, err := parseHours([]string{"Always"}); err != nil || hours != nil {
		t.Errorf("always: %v, %v", hours, err)
	}
	if hours, err := parseHours([]string{"mon 08:00-17:00", "sat 08:00-12:00"}); err != nil || len(hours) != 2 {
		t.Errorf("two: %v, %v", hours, err)
	}
	_, err := parseHours([]string{"mon 08:00-17:00", "x 08:00-17:00", "always"})
	if err == nil || !strings.Contains(err.Error(), `"x"`) || !strings.Contains(err.Error(), `"always"`) {
		t.Errorf("not every problem is reported: %v", err)
	}
}

// Whatever window there may be is shown as it can be given again, and passes
// the portal's own check.
func TestWindowWordsAreReadBack(t *testing.T) {
	clock := rapid.StringMatching(`([01][0-9]|2[0-3]):[0-5][0-9]`)
	rapid.Check(t, func(t *rapid.T) {
		days := rapid.SliceOfNDistinct(rapid.IntRange(0, 6), 1, 7, rapid.ID[int]).Draw(t, "days")
		slices.Sort(days)
		w := models.Window{Days: days, From: clock.Draw(t, "from"), To: clock.Draw(t, "to")}
		got, err := parseWindow(windowWords(w))
		if err != nil || !reflect.DeepEqual(got, w) {
			t.Fatalf("%+v is shown as %q, which is read as %+v, %v", w, windowWords(w), got, err)
		}
		var p models.Problems
		if (models.Terms{Hours: []models.Window{got}}).Check(&p); p.Err() != nil {
			t.Fatalf("%+v: %v", got, p.Err())
		}
	})
}

func TestDaysWords(t *testing.T) {
	for want, days := range map[string][]int{"mon-fri": {1, 2, 3, 4, 5}, "sat,sun": {0, 6}, "fri-sun": {0, 5, 6}, "mon,wed-fri": {1, 3, 4, 5}, "daily": {0, 1, 2, 3, 4, 5, 6}} {
		if got := daysWords(days); got != want {
			t.Errorf("%v: %q, want %q", days, got, want)
		}
	}
}

func TestParseIDs(t *testing.T) {
	for text, want := range map[string][]int64{"1,2": {1, 2}, " 7 , 3,7": {3, 7}, "all": nil, "ALL": nil} {
		if got, err := parseIDs(text); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v; want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "1,", "0", "-1", "1;2", "all,1", "99999999999999999999"} {
		if got, err := parseIDs(text); err == nil {
			t.Errorf("%q is taken for %v", text, got)
		}
	}
}

func TestParseMinutes(t *testing.T) {
	for text, want := range map[string]int64{"30m": 30, "1h": 60, "1h30m": 90, "0s": 0, "120s": 2} {
		if got, err := parseMinutes(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "30", "90s", "-1m", "soon"} {
		if got, err := parseMinutes(text); err == nil {
			t.Errorf("%q is taken for %d", text, got)
		}
	}
}
