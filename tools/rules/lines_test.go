package rules

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const maxLineLength = 140

// longLinesIn is how many lines of each folder, outside tests, are longer. The numbers may
// only fall; a folder that is not named has none.
var longLinesIn = map[string]int{
	"cmd/weir":               4,
	"cmd/weir/cli":           12,
	"cmd/weir/config":        7,
	"deploy":                 1,
	"handlers":               310,
	"handlers/metrics":       13,
	"handlers/reference":     4,
	"handlers/sheet":         2,
	"models":                 5,
	"models/store":           55,
	"models/store/storetest": 9,
	"policies":               1,
	"pool":                   11,
	"pool/agent":             2,
	"pool/authority":         2,
	"pool/broker":            14,
	"pool/notebooks":         1,
	"pool/nvml":              3,
	"pool/placement":         4,
	"pool/placement/trace":   1,
	"pool/pooltest":          5,
	"pool/projects":          32,
	"pool/providers":         18,
	"pool/quota":             1,
	"pool/requests":          13,
	"pool/timeline":          2,
	"storage":                10,
	"storage/beneath":        1,
	"storage/files":          25,
	"storage/nfs":            4,
	"storage/rules":          3,
	"storage/storagetest":    12,
	"tools/cluster":          3,
	"tools/openapi":          1,
	"tools/peers":            6,
	"web":                    7,
	"workspaces":             26,
	"workspaces/kube":        15,
	"workspaces/local":       4,
	"workspaces/runtimetest": 2,
}

// No folder gets more long lines, and what it has lost stays lost.
func TestLongLines(t *testing.T) {
	found, places := map[string]int{}, map[string][]string{}
	for _, s := range tree(t) {
		if s.test || s.generated {
			continue
		}
		found[s.dir()] += len(s.long)
		for _, number := range s.long {
			places[s.dir()] = append(places[s.dir()], fmt.Sprint(s.path, ":", number))
		}
	}
	for dir, n := range found {
		switch limit := longLinesIn[dir]; {
		case n > limit:
			t.Errorf("%s has %d lines of more than %d characters, allowed are %d: %s", dir, n, maxLineLength, limit, strings.Join(places[dir], " "))
		case n < limit:
			t.Errorf("%s has only %d long lines left: write %q: %d into longLinesIn", dir, n, dir, n)
		}
	}
	for dir, limit := range longLinesIn {
		if _, known := found[dir]; !known || limit == 0 {
			t.Errorf("%s has no long lines: remove it from longLinesIn", dir)
		}
	}
}

func TestLongLinesAreCounted(t *testing.T) {
	text := strings.Repeat("è", maxLineLength) + "\n" + strings.Repeat("x", maxLineLength+1) + "\nx"
	if got := longLines(text); !slices.Equal(got, []int{2}) {
		t.Errorf("lines %d", got)
	}
}
