package web

import (
	"context"
	"slices"
	"testing"
	"time"

	"weir/models"
)

func TestChanges(t *testing.T) {
	before, after := `{"name":"a","until":null,"quota":{"gpu_cores":1,"cpu_milli":2}}`, `{"name":"a","quota":{"gpu_cores":3,"cpu_milli":2},"new":[1]}`
	for _, c := range []struct {
		name, before, after string
		want                []change
	}{
		{"fields inside and beside", before, after, []change{{"new", "", "[1]"}, {"quota.gpu_cores", "1", "3"}}},
		{"nothing", after, after, nil},
		{"new", "", `{"name":"a"}`, []change{{"name", "", "a"}}},
		{"gone", `{"name":"a"}`, "null", []change{{"name", "a", ""}}},
		{"no object", `"plain"`, "", []change{{"", "plain", ""}}},
		{"no JSON", "{", "[1,2]", []change{{"", "{", "[1,2]"}}},
	} {
		if got := changes(c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestObjectPath(t *testing.T) {
	project := int64(3)
	for _, c := range []struct {
		action, object string
		project        *int64
		want           string
	}{
		{"update", "project", nil, "/projects/7"},
		{"delete", "role", &project, "/projects/3"},
		{"update", "member", nil, ""},
		{"stop", "workspace", &project, "/workspaces/7"},
		{"fence", "agent", nil, "/pool/providers/7"},
		{"update", "device", nil, "/pool/devices/7"},
		{"update", "environment", nil, "/environments/7/edit"},
		{"delete", "environment", nil, ""},
		{"update", "account", nil, "/people/7"},
		{"create", "token", nil, ""},
	} {
		e := models.AuditEntry{Action: c.action, Object: c.object, ObjectID: 7, ProjectID: c.project}
		if got := objectPath(e); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.action, c.object, got, c.want)
		}
	}
}

func TestSpokenBy(t *testing.T) {
	ctx := context.Background()
	for via, want := range map[string]string{"session": "session", "token ci": "token ci", "command": "command line", "agent": "agent", "system": "", "": ""} {
		if got := spokenBy(ctx, via); got != want {
			t.Errorf("%q is shown as %q, want %q", via, got, want)
		}
	}
}

// sampleAudit has each kind of entry.
func sampleAudit() AuditView {
	at, one := time.Date(2030, 1, 2, 9, 30, 0, 0, time.UTC), int64(1)
	return AuditView{Next: "/audit?cursor=8", CSV: "/api/v1/audit.csv?action=update", Filtered: true, Form: Form{Values: map[string]string{"action": "update"}}, Rows: []models.AuditEntry{
		{ID: 12, At: at, ActorID: &one, Actor: "anna@example.org", Address: "2001:db8:85a3:8d3:1319:8a2e:370:7348", Via: "session", Action: "update", Object: "project", ObjectID: 1,
			Before: `{"name":"vision","quota":{"gpu_cores":300,"cpu_milli":64000}}`, After: `{"name":"vision","quota":{"gpu_cores":400,"cpu_milli":64000}}`},
		{ID: 11, At: at, ActorID: &one, Actor: "anna@example.org", Address: "192.0.2.7", Via: "token ci", Action: "launch", Object: "workspace", ObjectID: 5,
			After: `{"name":"segmentation","gpus":1,"cores":50,"gpu_memory_mib":40960,"cpu_milli":4000,"memory_mib":16384,"path":"/lab","environment":"PyTorch"}`},
		{ID: 10, At: at, Actor: "weir reconciler", Via: "system", Action: "stop", Object: "workspace", ObjectID: 4, Before: `"running"`, After: `"stopped"`},
		{ID: 9, At: at, Actor: "weir admin", Via: "command", Action: "delete", Object: "seat", Before: `{"name":"old"}`}}}
}
