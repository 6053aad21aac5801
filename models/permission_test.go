package models_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
)

func TestStandardPermissionsGrow(t *testing.T) {
	before := models.Permissions(0)
	for _, word := range models.StandardPermissions {
		set := models.PermissionsOf(word, models.AllPermissions)
		if !set.Contains(before|models.ProjectRead) || set == before {
			t.Errorf("%s has %s, less than the one before: %s", word, set, before)
		}
		before = set
	}
	if before != models.AllPermissions {
		t.Errorf("an owner has %s", before)
	}
	for _, word := range []string{"", "administrator", "Owner", "none"} {
		if set := models.PermissionsOf(word, models.AllPermissions); set != 0 {
			t.Errorf("%q permits %s", word, set)
		}
	}
	if set := models.PermissionsOf(models.PermissionCustom, models.MemberWrite); set != models.MemberWrite|models.ProjectRead {
		t.Errorf("a custom role permits %s", set)
	}
}

func TestEveryPermissionHasItsName(t *testing.T) {
	names := models.PermissionNames()
	for i, name := range names {
		if got := models.Permission(name); got != 1<<i || got.String() != name {
			t.Errorf("%s is %s", name, got)
		}
		obj, act, _ := strings.Cut(name, ":")
		if models.Permission(name+"x") != 0 || models.Permission(name+":") != 0 || models.Permission(obj+act) != 0 || models.Permission(act) != 0 {
			t.Errorf("something like %s is a permission", name)
		}
	}
	all, err := models.ParsePermissions(names)
	if err != nil || all != models.AllPermissions {
		t.Errorf("all are %s, %v", all, err)
	}
	if _, err := models.ParsePermissions([]string{"role:write", "role:own"}); err == nil {
		t.Error("role:own is no permission")
	}
}

// Sets survive JSON and the databases, where they are sorted lists of names.
func TestPermissionsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := models.Permissions(rapid.Uint32Range(0, uint32(models.AllPermissions)).Draw(t, "set"))
		raw, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var back, scanned models.Permissions
		if err := json.Unmarshal(raw, &names); err != nil || !slices.IsSorted(names) {
			t.Fatalf("%s, %v", raw, err)
		}
		stored, err := p.Value()
		if err != nil || json.Unmarshal(raw, &back) != nil || back != p || scanned.Scan(stored) != nil || scanned != p || scanned.Scan([]byte(stored.(string))) != nil || scanned != p {
			t.Fatalf("%s came back as %s and %s", p, back, scanned)
		}
	})
	p := models.AllPermissions
	if err := p.Scan(`["role:write","of:tomorrow"]`); err != nil || p != models.RoleWrite {
		t.Errorf("a name of tomorrow: %s, %v", p, err)
	}
	for _, bad := range []any{7, "x", []byte("{")} {
		if p.Scan(bad) == nil {
			t.Errorf("%v was read", bad)
		}
	}
}

func TestCheckPermissions(t *testing.T) {
	for _, c := range []struct {
		word  string
		names []string
		field string
		kept  string
	}{
		{"member", nil, "", ""},
		{"viewer", []string{"workspace:read", "project:read"}, "", ""}, // as it is shown
		{"custom", []string{"role:write"}, "", "project:read role:write"},
		{"custom", []string{"role:write", "role:write"}, "", "project:read role:write"},
		{"custom", nil, "permissions", ""},
		{"custom", []string{"role:own"}, "permissions", ""},
		{"member", []string{"role:write"}, "permissions", ""},
		{"boss", nil, "permission", ""},
		{"", []string{"role:write"}, "permission", ""},
	} {
		var p models.Problems
		kept := models.CheckPermissions(c.word, c.names, &p)
		field := ""
		if len(p) > 0 {
			field = p[0].Name
		}
		if field != c.field || strings.Join(kept, " ") != c.kept {
			t.Errorf("%+v: %q, %v", c, field, kept)
		}
	}
}
