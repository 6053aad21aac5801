package web

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"weir/models"
)

// AuditView lists who changed what.
type AuditView struct {
	Rows []models.AuditEntry
	Next string // address of the next page, empty on the last
}

// change is one field of an audited thing.
type change struct{ Name, Value string }

// changed lists the fields of one side of a change that differ from the
// other side. Both are JSON objects; anything else is shown as it is.
func changed(side, other string) []change {
	if side == "" || side == "null" {
		return nil
	}
	mine, ok := flatten(side)
	if !ok {
		return []change{{Value: side}}
	}
	theirs, _ := flatten(other)
	var out []change
	for _, name := range slices.Sorted(maps.Keys(mine)) {
		if theirs[name] != mine[name] {
			out = append(out, change{name, mine[name]})
		}
	}
	return out
}

// flatten reads a JSON object as dotted names and values.
func flatten(s string) (map[string]string, bool) {
	var m map[string]any
	if json.Unmarshal([]byte(s), &m) != nil || m == nil {
		return nil, false
	}
	out := map[string]string{}
	flattenInto(out, "", m)
	return out, true
}

func flattenInto(out map[string]string, prefix string, m map[string]any) {
	for name, v := range m {
		switch v := v.(type) {
		case map[string]any:
			flattenInto(out, prefix+name+".", v)
		case string:
			out[prefix+name] = v
		default:
			b, _ := json.Marshal(v) // it was just read from JSON
			out[prefix+name] = strings.TrimSpace(string(b))
		}
	}
}
