package web

import (
	"time"

	"weir/models"
)

// accessSamples are the pages about what people may do.
func accessSamples() []sample {
	one, project := int64(2), int64(1)
	curators := []models.CuratorView{{Curator: models.Curator{ID: 1, Directory: "/public_model", UserID: &one, CreatedAt: ago(90 * time.Hour)}, UserName: "Li Wei", Email: "li@example.org"},
		{Curator: models.Curator{ID: 2, Directory: "/public_dataset", ProjectID: &project, CreatedAt: ago(9 * time.Hour)}, ProjectName: "vision"}}
	return append(linkSamples(), []sample{
		{"curators", "/curators", &root, CuratorsPage(CuratorsView{Rows: curators, Directories: []string{"/public_model", "/public_dataset"}})},
		{"curators-none", "/curators", &root, CuratorsPage(CuratorsView{Form: Form{}.Refuse(models.Invalid("email", "must not be empty"))})},
		{"curator-remove", "/curators/1/delete", &root, ConfirmPage(ConfirmRemoveCurator(curators[0]))},
		{"access", "/access?user_id=2&project_id=1&object=role&act=write", &root, AccessCheckPage(sampleAccessCheck())},
		{"access-ask", "/access", &root, AccessCheckPage(AccessCheckView{Rights: models.PermissionNames()})},
		{"role-custom", "/projects/1/roles/2/edit", &li, RoleFormPage(sampleCustomRole())},
		{"project-describe", "/projects/1/edit", &li, ProjectFormPage(ProjectFormView{ID: 1, Name: "vision", Describing: true, Form: Form{Values: map[string]string{"name": "vision"}, Version: 1}})},
	}...)
}

// linkSamples are the pages of invitations and other one-time links.
func linkSamples() []sample {
	return []sample{
		{"gone-forbidden", "/", nil, WorkspaceErrorPage(WorkspaceErrorView{ErrorView: ErrorView{Status: 403, Err: *models.Forbidden("Cross-site requests are not allowed.")}, Portal: portal, Link: "/workspaces/5/open"})},
		{"invite", "/projects/1/invitations/new", &root, InviteFormPage(InviteFormView{ProjectID: 1, Project: "vision", Remaining: quota, Roles: []RoleChoice{{2, "algorithm engineer", "member", limit}},
			Form: Form{Values: map[string]string{"emails": "li, mei@example.org"}}.Refuse(models.Invalid("emails[0]", "must be an email address such as name@example.org"))})},
		{"invitations", "/invitations", &root, InvitationsPage(InvitationsView{Rows: sampleInvitations(), CanInvite: true, ByMail: true, Links: []InvitationLink{{"mei@example.org", "https://weir.example.org/invitation?token=abc", later}}})},
		{"invitations-none", "/projects/1/invitations", &root, InvitationsPage(InvitationsView{ProjectID: 1, Project: "vision"})},
		{"invitation", "/invitation?token=abc", nil, InvitationPage(InvitationView{Invitation: sampleInvitations()[0], Token: "abc", Provider: "Example University"})},
		{"invitation-account", "/invitation?token=abc", nil, InvitationPage(InvitationView{Invitation: sampleInvitations()[0], Token: "abc", HasAccount: true})},
		{"invitation-mine", "/invitation?token=abc", &li, InvitationPage(InvitationView{Invitation: sampleInvitations()[0], Token: "abc", HasAccount: true, Mine: true})},
		{"invitation-other", "/invitation?token=abc", &root, InvitationPage(InvitationView{Invitation: sampleInvitations()[1], Token: "abc"})},
		{"invitation-closed", "/invitation?token=abc", nil, InvitationPage(InvitationView{Invitation: sampleInvitations()[1], Token: "abc", Closed: models.Conflict("This invitation has already been accepted.")})},
		{"invitation-revoke", "/invitations/1/revoke", &root, ConfirmPage(ConfirmRevokeInvitation(sampleInvitations()[0]))},
		{"link-invalid", "/password?token=abc", nil, InvalidLinkPage()},
		{"password", "/password?token=abc", nil, PasswordPage(PasswordView{Token: "abc", Email: li.Email})},
		{"forgot", "/password/forgot", nil, ForgotPasswordPage(ForgotView{ByMail: true})},
		{"forgot-sent", "/password/forgot", nil, ForgotPasswordPage(ForgotView{ByMail: true, Sent: true})},
		{"forgot-without-mail", "/password/forgot", nil, ForgotPasswordPage(ForgotView{})},
		{"account-second-factor", "/account", &li, AccountPage(AccountView{SecondFactor: SecondFactor{Available: true}})},
		{"account-second-factor-enabled", "/account", &li, AccountPage(AccountView{SecondFactor: SecondFactor{EnabledAt: &later, RecoveryCodes: 9, Available: true}})},
		{"account-second-factor-required", "/account", &li, AccountPage(AccountView{SecondFactor: SecondFactor{EnabledAt: &later, Required: true, Available: true}})},
		{"second-factor-setup", "/account/second-factor/setup", &li, SetupSecondFactorPage(ProofView{})},
		{"second-factor-disable", "/account/second-factor/disable", &li, DisableSecondFactorPage(ProofView{SecondFactor: SecondFactor{EnabledAt: &later},
			Form: Form{}.Refuse(models.Invalid("code", "is not valid now; each code works once and for about a minute"))})},
		{"second-factor-codes", "/account/second-factor/recovery-codes", &li, NewRecoveryCodesPage(ProofView{SecondFactor: SecondFactor{EnabledAt: &later}})},
		{"second-factor-app", "/account/second-factor/confirm", &li, EnrollmentPage(sampleEnrollment())},
		{"recovery-codes", "/account/second-factor/confirm", &li, RecoveryCodesPage(RecoveryCodesView{Codes: []string{"abcd-efgh-ijkl-mnop", "qrst-uvwx-yz23-4567"}, Next: "/account"})},
		{"signin-code", "/signin/second-factor", nil, CodeStepPage(CodeStepView{})},
		{"signin-recovery-code", "/signin/second-factor?with=recovery-code", nil, CodeStepPage(CodeStepView{Recovery: true,
			Form: Form{}.Refuse(models.Invalid("code", "is not valid now; each code works once and for about a minute"))})},
		{"signin-setup", "/signin/second-factor/setup", nil, SetupStepPage()},
		{"sign-in-policy", "/sign-in-policy", &root, SignInPolicyPage(SignInPolicyView{Form: Form{Version: 1, Values: map[string]string{"second_factor": "administrators"}}})},
		{"second-factor-reset", "/people/2/second-factor/reset", &root, ConfirmPage(ConfirmResetSecondFactor(li))},
		{"person-second-factor", "/people/2", &root, PersonPage(PersonView{Person: withSecondFactor(li)})},
		{"person-link", "/people/2/password-link", &root, PersonPage(PersonView{Person: li, PasswordLink: InvitationLink{URL: "https://weir.example.org/password?token=abc", ExpiresAt: later}})},
	}
}

func sampleEnrollment() EnrollmentView {
	code, err := QRCode("otpauth://totp/Weir:li@example.org?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Weir")
	if err != nil {
		panic(err)
	}
	return EnrollmentView{QR: code, Secret: "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", ExpiresAt: later, Action: "/account/second-factor/confirm", Back: "/account"}
}

func withSecondFactor(u models.User) models.User {
	u.SecondFactorAt = &later
	return u
}

func sampleAccessCheck() AccessCheckView {
	return AccessCheckView{Rights: models.PermissionNames(),
		Form: Form{Values: map[string]string{"email": "li@example.org", "project_name": "vision", "right": "role:write"}},
		AccessCheck: &AccessCheck{Person: "Li Wei", Project: "vision", ProjectID: 1, Right: "role:write", Steps: []AccessCheckStep{
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

// sampleInvitations are an invitation to a project that could not be accepted yet, and
// one to the platform that was.
func sampleInvitations() []models.InvitationView {
	return []models.InvitationView{
		{Invitation: models.Invitation{ID: 1, Email: "mei@example.org", ProjectID: ptr(int64(1)), RoleID: ptr(int64(2)), CreatedAt: ago(time.Hour), ExpiresAt: later,
			Problem: models.Say("%s can no longer give this access.", "Anna Berg")}, InviterName: "Anna Berg", Project: "vision", Role: "algorithm engineer"},
		{Invitation: models.Invitation{ID: 2, Email: "sun@example.org", Admin: true, CreatedAt: ago(time.Hour), ExpiresAt: later, AcceptedAt: ptr(ago(time.Minute))}, InviterName: "Anna Berg"},
	}
}
