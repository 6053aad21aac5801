package web

import (
	"context"
	"slices"
	"testing"

	"weir/models"
)

func TestChanges(t *testing.T) {
	before, after := `{"name":"a","until":null,"quota":{"gpu_cores":1,"cpu_milli":2}}`, `{"name":"a","quota":{"gpu_cores":3,"cpu_milli":2},"new":[1]}`
	for _, c := range []struct {
		name, before, after string
		want                []change
	}{
		{"fields inside and beside", before, after, []change{{"new.1", "", "1"}, {"quota.gpu_cores", "1", "3"}}},
		{"nothing", after, after, nil},
		{"new", "", `{"name":"a"}`, []change{{"name", "", "a"}}},
		{"gone", `{"name":"a"}`, "null", []change{{"name", "a", ""}}},
		{"no object", `"plain"`, "", []change{{"", "plain", ""}}},
		{"no JSON", "{", "[1,2]", []change{{"", "{", ""}, {"1", "", "1"}, {"2", "", "2"}}},
		{"a list of objects", "", `[{"uuid":"a","there":true}]`, []change{{"1.there", "", "true"}, {"1.uuid", "", "a"}}},
	} {
		if got := changes(t.Context(), c.before, c.after); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestChangeOfOutgoingConnections(t *testing.T) {
	var said []string
	for _, access := range models.OutgoingAccesses {
		said = append(said, change{Name: "outgoing.access"}.value(t.Context(), string(access)))
	}
	if want := []string{"All that the installation allows", "None", "Listed hosts only"}; !slices.Equal(said, want) {
		t.Errorf("%q", said)
	}
}

func TestObjectPath(t *testing.T) {
	project, may := int64(3), With(context.Background(), Page{Can: models.PlatformPermissions{EditEnvironments: true, EditAccounts: true, ReadAccounts: true}})
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
		{"approve", "request", &project, "/requests/7"},
		{"update", "department", nil, "/departments/7"},
		{"delete", "department", nil, ""},
		{"delete", "curator", nil, "/curators"},
		{"create", "gpu_price", nil, "/prices"},
		{"update", "overcommit", nil, "/capacity"},
		{"revoke", "invitation", &project, "/projects/3/invitations"},
		{"create", "invitation", nil, "/invitations"},
		{"write", "file", &project, "/projects/3/files"},
		{"delete", "split preset", &project, "/projects/3/split-presets"},
	} {
		e := models.AuditEntry{Action: c.action, Object: c.object, ObjectID: 7, ProjectID: c.project}
		if got := objectPath(may, e); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.action, c.object, got, c.want)
		}
	}
	for _, object := range []string{"environment", "department", "account"} { // whose pages others may not see
		if got := objectPath(context.Background(), models.AuditEntry{Action: "update", Object: object, ObjectID: 7}); got != "" {
			t.Errorf("a reader without rights is led to %s", got)
		}
	}
}

func TestSpokenBy(t *testing.T) {
	ctx := context.Background()
	for via, want := range map[string]string{"session": "session", "token ci": "token ci", "command": "command line", "agent": "agent", "system": "", "": ""} {
		if got := authenticatedBy(ctx, via); got != want {
			t.Errorf("%q is shown as %q, want %q", via, got, want)
		}
	}
}

func TestChangesForPeople(t *testing.T) {
	ctx := With(t.Context(), Page{Lang: models.Chinese})
	before := `{"ends_at":null,"reason":{},"layout":[]}`
	after := `{"ends_at":"2027-02-01T00:00:00Z","reason":{"f":"the account is disabled"},"layout":["3g.40gb"],"Sharing":"time-slicing","decided":{"limit":{"limit":{"cpu_milli":1500}}},"terms":{"hours":[{"days":[0]}]}}`
	want := []string{"共享方式: 时间片", "审批意见 · 每位成员的限额 · CPU: 1.5", "结束日期: 2027-01-31", "MIG 布局 · 1: 3g.40gb", "理由: 该账号已停用", "出借条款 · 时段 · 1 · 星期 · 1: 周日"}
	var got []string
	for _, c := range changes(ctx, before, after) {
		got = append(got, c.label(ctx)+": "+c.value(ctx, c.After))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
