package models_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"weir/models"
)

func TestClientZones(t *testing.T) {
	zones, err := models.ParseClientZones("berlin=10.1.0.0/16,2001:db8:1::/48@gw.berlin.example.org:443; lab-1=10.1.9.0/24@10.1.9.1:22;all=0.0.0.0/0@[::1]:80")
	if err != nil || !slices.Equal(zones.Names(), []string{"berlin", "lab-1", "all"}) || zones[0].Address != "gw.berlin.example.org:443" {
		t.Fatalf("%+v, %v", zones, err)
	}
	for client, want := range map[string]string{"10.1.2.3": "berlin", "10.1.9.3": "lab-1", "::ffff:10.1.9.3": "lab-1", "192.0.2.1": "all",
		"2001:db8:1::5": "berlin", "2001:db8:2::5": "", "": "", "elsewhere": ""} {
		if got := zones.Of(client); got != want {
			t.Errorf("%s is in %q, want %q", client, got, want)
		}
	}
	for _, text := range []string{"", "a", "a=", "a=10.0.0.0/8", "a=10.0.0.0/8@", "a=10.0.0.0/8@host", "a=10.0.0.0/8@:1", "a=10.0.0.1@h:1", "A=10.0.0.0/8@h:1",
		"=10.0.0.0/8@h:1", "a=10.0.0.0/8@h:1;a=11.0.0.0/8@h:1", "a=10.0.0.0/33@h:1", strings.Repeat("a", 31) + "=10.0.0.0/8@h:1"} {
		if zones, err := models.ParseClientZones(text); err == nil {
			t.Errorf("%q is %+v", text, zones)
		}
	}
}

// A single slow measurement changes little, and one that is outdated nothing.
func TestLatencySmoothing(t *testing.T) {
	now := time.Now()
	before := models.ProviderLatency{Micros: 8000, MeasuredAt: now}
	for age, want := range map[time.Duration]int64{time.Minute: 9000, models.LatencyAge: 9000, models.LatencyAge + 1: 16_000} {
		if got := before.After(models.ProviderLatency{Micros: 16_000, MeasuredAt: now.Add(age)}); got.Micros != want {
			t.Errorf("after %s: %d µs, want %d", age, got.Micros, want)
		}
	}
	for micros, want := range map[int64]int64{1: 1, 1499: 1, 1500: 2, 240_000: 240} {
		if got := (models.ProviderLatency{Micros: micros}).Milliseconds(); got != want {
			t.Errorf("%d µs are %d ms", micros, got)
		}
	}
}
