package web

import (
	"errors"
	"testing"

	"weir/models"
)

func TestFormRefuse(t *testing.T) {
	f := Form{Values: map[string]string{"name": "x"}, Version: 3}
	got := f.Refuse(models.InvalidFields(models.Field{Name: "name", Reason: models.Say("first")}, models.Field{Name: "name", Reason: models.Say("second")}))
	if got.Value("name") != "x" || got.Version != 3 || got.Errors["name"].String() != "first" {
		t.Errorf("a refused form came back as %+v", got)
	}
	if got := f.Refuse(errors.New("disk full at sector 7")); got.Message.String() != "Something went wrong. No changes were made." {
		t.Errorf("an internal error shows as %q", got.Message)
	}
}

// The least role is chosen for the reader, unless it does not fit.
func TestChosenRole(t *testing.T) {
	engineer, lead := RoleChoice{ID: 1, Permission: models.PermissionMember, Limit: models.Resources{GPUCores: 100}}, RoleChoice{ID: 2, Permission: models.PermissionOwner}
	v := MemberFormView{Roles: []RoleChoice{lead, engineer}, Remaining: models.Resources{GPUCores: 99}}
	if got := v.ChosenRole(); got != 0 {
		t.Errorf("role %d is chosen", got)
	}
	v.Remaining.GPUCores = 100
	if got := v.ChosenRole(); got != 1 {
		t.Errorf("role %d is chosen, not the least", got)
	}
	v.Lacks = map[int64]models.Permissions{1: models.ProjectRead}
	if got := v.ChosenRole(); got != 2 {
		t.Errorf("role %d is chosen, which the reader cannot grant", got)
	}
	v.Lacks = nil
	custom := MemberFormView{Roles: []RoleChoice{lead, {ID: 3, Permission: models.PermissionCustom}}}
	if got := custom.ChosenRole(); got != 3 {
		t.Errorf("role %d is chosen before one with fewer permissions", got)
	}
	v.Form.Values = map[string]string{"role_id": "2"}
	if got := v.ChosenRole(); got != 2 {
		t.Errorf("role %d is chosen, not that of the form", got)
	}
}

// The least set of permissions is chosen for the reader who can grant it.
func TestChosenPermission(t *testing.T) {
	for _, c := range []struct {
		value string
		has   models.Permissions
		want  string
	}{
		{"", models.AllPermissions, models.PermissionViewer},
		{"", models.ProjectRead | models.RoleWrite, models.PermissionCustom},
		{models.PermissionManager, models.AllPermissions, models.PermissionManager},
	} {
		choice := PermissionChoice{Form: Form{Values: map[string]string{"permission": c.value}}, Has: c.has, Custom: true}
		for _, word := range choice.words() {
			if choice.chosen(word) != (word == c.want) {
				t.Errorf("%q of %s: %s is chosen %t, want %s", c.value, c.has, word, choice.chosen(word), c.want)
			}
		}
	}
}

func TestReasonAfterItsLabel(t *testing.T) {
	for _, c := range [][3]string{{"CPU", "CPU: 2 in use", "2 in use"}, {"CPU", "CPU：使用中 2", "使用中 2"}, {"CPU", "CPUs are missing", "CPUs are missing"},
		{"Memory", "must be larger", "must be larger"}} {
		if got := afterLabel(c[0], c[1]); got != c[2] {
			t.Errorf("%q after %q: %q", c[1], c[0], got)
		}
	}
}

func TestRequestShowsWhatIsRequested(t *testing.T) {
	one := models.Resources{GPUCores: 100}
	quota := models.RequestView{QuotaRequest: models.QuotaRequest{Kind: models.RequestQuota, Requested: models.Requested{Quota: &models.QuotaSpec{Quota: one.Input()}}}}
	role := models.RequestView{QuotaRequest: models.QuotaRequest{Kind: models.RequestRole, Requested: models.Requested{Role: &models.RoleSpec{Limit: one.Input()}}}}
	less := &RequestFacts{Now: &models.Resources{CPUMilli: 1000}}
	for i, want := range [][3]bool{{true, true, true}, {false, true, false}, {false, true, true}} { // GPU cores, GPU memory, CPU
		got := [3]bool{RequestPageView{RequestView: role}.concerns(i), RequestPageView{RequestView: quota}.concerns(i), RequestPageView{RequestView: quota, Facts: less}.concerns(i)}
		if got != want {
			t.Errorf("resource %d: shown %v, want %v", i, got, want)
		}
	}
}

// TestLabelledInputsAreDescribed holds the labels of forms to fields: the summary of errors names any other
// input as programs do, without a link.
func TestLabelledInputsAreDescribed(t *testing.T) {
	for _, labels := range []map[string]string{personLabels, curatorLabels, deployLabels, launchLabels, requestLabels, decisionLabels, reservationLabels, changeLabels, runLabels, splitPresetLabels, accountingLabels} {
		for name, label := range labels {
			if _, known := fieldOf(label); !known {
				t.Errorf("the input %s has the label of %s, which is not described", name, label)
			}
		}
	}
}
