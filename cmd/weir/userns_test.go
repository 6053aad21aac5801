package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/cmd/weir/config"
	"weir/storage/rules"
)

func TestMapOfSubordinateIDs(t *testing.T) {
	cfg := config.Config{SandboxUID: 62_000, IDRange: rules.IDRange{First: 1_000_000, Last: 1_019_999}}
	for content, want := range map[string][]idMap{
		"ann:100000:5000": {{0, 7, 1}, {62_000, 100_000, 1}, {1_000_000, 100_001, 4_999}},
		"ben:1:9000\nann:5:1\n1007:100000:65536\n:::\nx": {{0, 7, 1}, {62_000, 100_000, 1}, {1_000_000, 100_001, 20_000}},
		"ann:100000:999":   nil,
		"ben:100000:65536": nil,
		"":                 nil,
	} {
		file := filepath.Join(t.TempDir(), "subuid")
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := namespaceMap(cfg, 7, file, "ann", "1007")
		if (err == nil) != (want != nil) || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v, want %v", content, got, err, want)
		}
	}
	if _, err := namespaceMap(cfg, 7, "/nowhere", "ann"); err == nil || !strings.Contains(err.Error(), "/nowhere") {
		t.Errorf("without a file: %v", err)
	}
}

func TestLastMappedID(t *testing.T) {
	maps := []idMap{{0, 5, 1}, {100, 900, 50}}
	for first, want := range map[int64]int64{0: 0, 1: 0, 100: 149, 149: 149, 150: 149, 99: 98} {
		if got := lastMapped(maps, first); got != want {
			t.Errorf("%d: %d, want %d", first, got, want)
		}
	}
}
