package web

import "weir/models"

func samplePreview(refused bool) *PreviewView {
	v := &PreviewView{Members: 10, Headroom: 3, Role: true}
	for _, a := range quota.Amounts() {
		v.Rows = append(v.Rows, PreviewRow{Amount: models.Amount{Name: a.Name, Label: a.Label, Value: a.Value / 2}, Before: a.Value / 4, Quota: a.Value})
	}
	if !refused {
		return v
	}
	first := &v.Rows[0]
	first.Value, first.Over = first.Quota+40, true
	v.Rows[2].Over = true
	v.Refused = models.InvalidFields(models.Field{Name: "limit.gpu_cores", Reason: models.Say("%s: %s more requested for %d members; %s of the project's quota of %s remaining",
		first.Label, "140", int64(10), "100", "400")})
	v.OverLimit = []MemberOverLimit{{Name: "Li Wei", Excess: inUse.Exceeding(models.Resources{})}, {Name: "Anna Berg", Excess: inUse.Exceeding(models.Resources{})[:1]}}
	return v
}

func sampleOutcomes() []models.ImportedRow {
	return []models.ImportedRow{
		{Line: 2, Email: "ann@example.org", Outcome: models.RowAdded, Changes: []models.CellChange{{Column: "role", To: "engineer"}, {Column: "joined", To: "2026-03-01"}}},
		{Line: 3, Email: "bob@example.org", Outcome: models.RowChanged, Changes: []models.CellChange{{Column: "role", From: "engineer", To: "lead"}, {Column: "until", From: "2027-01-31"}}},
		{Line: 4, Email: "cho@example.org", Outcome: models.RowUnchanged},
		{Line: 5, Email: "dan@example.org", Outcome: models.RowRefused, Refusals: []models.Field{
			{Name: "role", Reason: models.Say("is not a role of this project")}, {Reason: models.Say("Sign in to continue.")}}},
	}
}

func tableSamples() []sample {
	project := models.Project{ID: 1, Name: "vision"}
	typed := Form{Values: map[string]string{"name": "algorithm engineer", "permission": "member"}, Version: 1}
	table := ImportMembers(project, []string{"email", "name", "department", "role", "joined", "until"})
	checked, ready := table, table
	checked.Form, checked.Rows = Form{Values: map[string]string{"csv": "email,role\nann@example.org,engineer", "plan": "00ff"}}, sampleOutcomes()
	ready.Form, ready.Rows = checked.Form, sampleOutcomes()[:3]
	wrong := ImportPeople([]string{"email", "name", "department", "admin", "auditor"})
	wrong.Form = Form{}.Refuse(models.Invalid("csv", "line %d is not valid UTF-8; save the file as UTF-8", 3))
	vision := models.Department{ID: 1, Name: "Vision"}
	inUseBy12 := models.Conflict("%d people are in the department %s. Move them to another department first.", 12, "Vision")
	return []sample{
		{"role-preview", "/projects/1/roles/2/edit", &root, RoleFormPage(RoleFormView{Has: models.AllPermissions, ProjectID: 1, Project: "vision", ID: 2, Name: "algorithm engineer", Members: 10, Quota: quota, Form: typed, Preview: samplePreview(false)})},
		{"role-preview-refused", "/projects/1/roles/2/edit", &root, RoleFormPage(RoleFormView{Has: models.AllPermissions, ProjectID: 1, Project: "vision", ID: 2, Name: "algorithm engineer", Members: 10, Quota: quota, Form: typed, Preview: samplePreview(true)})},
		{"project-preview", "/projects/1/edit", &root, ProjectFormPage(ProjectFormView{ID: 1, Name: "vision", Preview: samplePreview(true)})},
		{"departments", "/departments", &root, DepartmentsPage(DepartmentsView{Next: "/departments?cursor=2", Rows: []DepartmentRow{{vision, models.DepartmentSums{People: 12, Projects: 3, InUse: inUse}}, {models.Department{ID: 2, Name: "Speech"}, models.DepartmentSums{}}}})},
		{"departments-none", "/departments", &root, DepartmentsPage(DepartmentsView{})},
		{"department-new", "/departments/new", &root, DepartmentFormPage(DepartmentFormView{})},
		{"department-edit", "/departments/1", &root, DepartmentFormPage(DepartmentFormView{ID: 1, Name: "Vision", Blocked: inUseBy12, Form: Form{Version: 1, Values: map[string]string{"name": "Vision"}}})},
		{"department-delete", "/departments/1/delete", &root, ConfirmPage(ConfirmDeleteDepartment(vision, nil))},
		{"department-delete-blocked", "/departments/1/delete", &root, ConfirmPage(ConfirmDeleteDepartment(vision, inUseBy12))},
		{"import", "/projects/1/members/import", &root, ImportPage(table)},
		{"import-checked", "/projects/1/members/import", &root, ImportPage(checked)},
		{"import-ready", "/projects/1/members/import", &root, ImportPage(ready)},
		{"import-wrong", "/people/import", &root, ImportPage(wrong)},
	}
}
