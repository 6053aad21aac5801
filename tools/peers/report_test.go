package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestSpread(t *testing.T) {
	if got := spreadOf([]float64{5, 1, 3}); got != (spread{3, 1, 5}) {
		t.Error(got)
	}
	if got := spreadOf([]float64{4, 1, 2, 8}); got != (spread{3, 1, 8}) {
		t.Error(got)
	}
}

// Ratios are those of the same round: a slow minute does not count for one of
// the two alone.
func TestRatios(t *testing.T) {
	of := func(name string, rates ...float64) result {
		var samples []sample
		for _, r := range rates {
			samples = append(samples, sample{Rate: r, CPU: time.Duration(6e10 / r)})
		}
		return resultOf(candidate{Name: name}, samples)
	}
	ratios := ratiosOf([]result{of(nameDirect, 1000, 100, 1000), of(nameCookie, 500, 50, 400), of(nameHub, 10, 10, 10), of(pagePrefix+"home", 30, 40, 50),
		of(nameHub+suffixAlone, 5, 5, 5), of(pagePrefix+"home"+suffixFirst, 10, 10, 10)})
	want := []ratio{
		{nameCookie, nameDirect, 0.35, spread{0.5, 0.4, 0.5}, spread{0.5, 0.4, 0.5}},
		{pagePrefix + "home", nameHub, 3, spread{4, 3, 5}, spread{4, 3, 5}},
		{pagePrefix + "home" + suffixFirst, nameHub + suffixAlone, 5, spread{2, 2, 2}, spread{2, 2, 2}},
	}
	if !slices.Equal(ratios, want) {
		t.Errorf("%+v", ratios)
	}
	var out strings.Builder
	report{Ratios: ratios}.print(&out)
	if !strings.Contains(out.String(), "4.00 (3.00–5.00)") {
		t.Error(out.String())
	}
}

func TestParseCPUs(t *testing.T) {
	got, err := parseCPUs(" 0-2,8\n")
	if err != nil || !slices.Equal(got, []string{"0", "1", "2", "8"}) {
		t.Error(got, err)
	}
	for _, bad := range []string{"", "a", "1-b"} {
		if got, err := parseCPUs(bad); err == nil {
			t.Errorf("%q: %v", bad, got)
		}
	}
}
