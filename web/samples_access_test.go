package web

import "weir/models"

// accessSamples are the pages about what people may do.
func accessSamples() []sample {
	return []sample{
		{"access", "/access?user=2&project=1&object=role&act=write", &root, AccessCheckPage(sampleAccessCheck())},
		{"access-ask", "/access", &root, AccessCheckPage(AccessCheckView{Rights: models.PermissionNames()})},
		{"role-custom", "/projects/1/roles/2/edit", &li, RoleFormPage(sampleCustomRole())},
		{"project-describe", "/projects/1/edit", &li, ProjectFormPage(ProjectFormView{ID: 1, Name: "vision", Describing: true, Form: Form{Values: map[string]string{"name": "vision"}, Version: 1}})},
	}
}

func sampleAccessCheck() AccessCheckView {
	return AccessCheckView{Rights: models.PermissionNames(),
		Form: Form{Values: map[string]string{"email": "li@example.org", "project_name": "vision", "right": "role:write"}},
		AccessCheck: &AccessCheck{Person: "Li Wei", PersonID: 2, Project: "vision", ProjectID: 1, Right: "role:write", Steps: []AccessCheckStep{
			{models.Say("The account %s is enabled.", "li@example.org"), "nothing"},
			{models.Say("Is not a platform administrator or an auditor."), "nothing"},
			{models.Say("Is a member of the project %s.", "vision"), "nothing"},
			{models.Say("Has the role %s in the project, with the permissions %s.", "engineer", "project:read, workspace:read"), "nothing"},
			{models.Say("No rule allows this. Missing permission: %s. Roles of the project that have it: %s.", "role:write", "lead"), "no"},
		}}}
}

// sampleCustomRole is a role that a reader with fewer rights than it has looks
// at.
func sampleCustomRole() RoleFormView {
	return RoleFormView{ProjectID: 1, Project: "vision", ID: 2, Name: "steward", Has: models.PermissionsOf(models.PermissionManager, 0),
		Form: Form{Version: 1, Values: map[string]string{"name": "steward", "permission": models.PermissionCustom, "permissions": "member:write project:describe"}}}
}
