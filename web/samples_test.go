package web

import (
	"strings"
	"time"

	"weir/models"
)

// samples are all pages, each in the states that look different.
func samples() []sample {
	badQuota := Form{Version: 7, Values: map[string]string{"name": "vision", "quota.gpu_cores": "-4", "ends_at": "2026-07-01", "launch.env": "A=1"}}.
		Refuse(models.Invalid("quota.gpu_cores", "must not be negative"))
	badEmail := Form{Values: map[string]string{"email": "li", "name": "Li"}}.
		Refuse(models.Invalid("email", "must be an email address such as name@example.org"))
	badCores := Form{Values: map[string]string{"cores": "700", "env": "A=1"}}.Refuse(models.InvalidFields(
		models.Field{Name: "cores", Reason: models.Say("must be at most %d", 100)},
		models.Field{Name: "other", Reason: models.Say("must not be empty")}))
	project := sampleProject()
	other := root
	other.ID, other.Name, other.Email, other.Admin, other.Disabled = 7, "Ruiz", "ruiz@example.org", false, true
	return append([]sample{
		{"setup", "/setup", nil, SetupPage(SetupView{Token: "abc def"})},
		{"setup-refused", "/setup", nil, SetupPage(SetupView{Token: "abc", Form: badEmail})},
		{"setup-closed", "/setup", nil, SetupClosedPage()},
		{"signin", "/signin", nil, SignInPage(SignInView{Next: "/pool"})},
		{"signin-provider", "/signin", nil, SignInPage(SignInView{Next: "/pool", Provider: "Example University"})},
		{"signin-provider-refused", "/signin/oidc/callback", nil, SignInPage(SignInView{Next: "/", Provider: "Example University", Refused: Form{}.Refuse(models.Forbidden("Email addresses at %s cannot sign in.", "sub.example.org"))})},
		{"home", "/", &li, HomePage(HomeView{Workspaces: sampleRows(), Projects: []ProjectCard{
			{ID: 1, Name: "vision", Role: "algorithm engineer", Meters: LimitMeters(inUse, models.Resources{}, limit), Until: &later, EndsAt: &later, Active: true, CanLaunch: true, Available: sampleAvailable()},
			{ID: 2, Name: "speech", Role: "guest", Meters: LimitMeters(models.Resources{}, models.Resources{}, limit.Sub(inUse)), Active: false}}})},
		{"home-new", "/", &li, HomePage(HomeView{})},
		{"home-idle", "/", &li, HomePage(HomeView{Projects: []ProjectCard{{ID: 1, Name: "vision", Role: "lead", Meters: LimitMeters(inUse, models.Resources{}, limit), Active: true, CanLaunch: true}}})},
		{"home-admin-new", "/", &root, HomePage(HomeView{})},
		{"projects", "/projects", &root, ProjectsPage(ProjectsView{Next: "/projects?cursor=20", Rows: []ProjectRow{
			{ID: 1, Name: "vision", Role: "lead", Members: 4, Workspaces: 2, InUse: inUse, Quota: quota, StartsAt: ago(3000 * time.Hour), EndsAt: &later, Active: true},
			{ID: 2, Name: "speech", Members: 11, Quota: quota, StartsAt: ago(9000 * time.Hour)}}})},
		{"projects-many", "/projects?sort=remaining&order=desc", &root, ProjectsPage(ProjectsView{Many: true, Mine: true, Sort: "remaining", Down: true, Form: Form{Values: map[string]string{"q": "vi"}}, Rows: []ProjectRow{
			{ID: 1, Name: "vision", Role: "lead", Members: 4, Workspaces: 2, InUse: inUse, Allocated: limit, Quota: quota, StartsAt: ago(3000 * time.Hour), EndsAt: &later, Active: true}}})},
		{"projects-not-found", "/projects?q=x", &root, ProjectsPage(ProjectsView{Many: true, Form: Form{Values: map[string]string{"q": "x"}}})},
		{"project-usage", "/projects/1/usage", &root, UsagePage(sampleUsage())},
		{"project-usage-own", "/projects/1/usage", &li, UsagePage(UsageView{Project: sampleProject().Project, UsageRange: sampleRange(168 * time.Hour)})},
		{"projects-none", "/projects", &li, ProjectsPage(ProjectsView{})},
		{"project", "/projects/1", &root, ProjectPage(project)},
		{"project-seen", "/projects/1", &li, ProjectPage(ProjectView{Project: models.Project{ID: 2, Name: "old", StartsAt: ago(9000 * time.Hour), EndsAt: ptr(ago(time.Hour))}})},
		{"project-new", "/projects/new", &root, ProjectFormPage(ProjectFormView{})},
		{"project-edit", "/projects/1/edit", &root, ProjectFormPage(ProjectFormView{ID: 1, Name: "vision", Form: badQuota})},
		{"role-new", "/projects/1/roles/new", &root, RoleFormPage(RoleFormView{Has: models.AllPermissions, ProjectID: 1, Project: "vision", Quota: quota, Remaining: quota.Sub(limit)})},
		{"role-edit", "/projects/1/roles/2/edit", &root, RoleFormPage(RoleFormView{Has: models.AllPermissions, ProjectID: 1, Project: "vision", ID: 2, Name: "algorithm engineer", Members: 2, Quota: quota, Remaining: quota, Form: Form{Version: 1, Values: map[string]string{"name": "algorithm engineer", "permission": "manager"}}})},
		{"member-new", "/projects/1/members/new", &root, MemberFormPage(MemberFormView{ProjectID: 1, Project: "vision", Remaining: quota.Sub(limit.Times(3)), Roles: []RoleChoice{{1, "lead", "manager", limit.Times(2)}, {2, "algorithm engineer", "member", limit}}})},
		{"service-account-new", "/projects/1/service-accounts/new", &root, MemberFormPage(MemberFormView{ProjectID: 1, Project: "vision", Service: true, Remaining: quota, Roles: []RoleChoice{{2, "algorithm engineer", "member", limit}}})},
		{"service-tokens", "/projects/1/members/13/tokens", &root, TokensPage(TokensView{Form: NewTokenForm(), Account: &project.Members[0].Member})},
		{"member-edit", "/projects/1/members/12/edit", &root, MemberFormPage(MemberFormView{ProjectID: 1, Project: "vision", ID: 12, Name: "Li Wei", Email: li.Email, Remaining: limit, Roles: []RoleChoice{{2, "algorithm engineer", "member", limit}}, Form: Form{Version: 2}})},
		{"member-delete", "/projects/1/members/12/delete", &root, ConfirmPage(ConfirmRemoveMember(project.Project, project.Members[0].Member))},
		{"role-delete", "/projects/1/roles/2/delete", &root, ConfirmPage(ConfirmDeleteRole(project.Project, project.Roles[1].Role, nil))},
		{"environment-delete", "/environments/1/delete", &root, ConfirmPage(ConfirmDeleteEnvironment(sampleEnvironments()[0], nil))},
		{"token-delete", "/tokens/1/delete", &li, ConfirmPage(ConfirmDeleteToken(models.AccessToken{ID: 1, Name: "ci"}, "/tokens"))},
		{"launch", "/launch?project_id=1", &li, LaunchPage(launchWith(granted))},
		{"launch-short", "/launch?project_id=1", &li, LaunchPage(launchWith(short))},
		{"launch-refused", "/launch", &li, LaunchPage(LaunchView{Form: badCores, Projects: []Option{{"1", "vision"}}, Project: "vision", Meters: LimitMeters(inUse, limit, limit), Mismatches: sampleLaunch().Mismatches,
			Decision: Decision{Outcome: models.OutcomeRefused, RequestedCores: 100, Reasons: []models.Text{models.Say("30 of 100 cores of your limit are in use: 70 are left.")}}})},
		{"launch-none", "/launch", &li, LaunchPage(LaunchView{})},
		{"workspaces", "/workspaces", &li, WorkspacesPage(WorkspacesView{Rows: append(sampleRows(), endedRows()...), State: "all", Next: "/workspaces?state=all&cursor=1"})},
		{"workspaces-none", "/workspaces", &li, WorkspacesPage(WorkspacesView{State: "ended"})},
		{"workspace", "/workspaces/5", &li, WorkspacePage(sampleWorkspace(models.StateRunning))},
		{"workspace-ending", "/workspaces/5", &li, WorkspacePage(endingWorkspace())},
		{"workspace-starting", "/workspaces/5", &li, WorkspacePage(sampleWorkspace(models.StateStarting))},
		{"workspace-queued", "/workspaces/5", &li, WorkspacePage(sampleWorkspace(models.StateQueued))},
		{"workspace-failed", "/workspaces/5", &li, WorkspacePage(sampleWorkspace(models.StateFailed))},
		{"pool", "/pool", &root, PoolPage(samplePool())},
		{"pool-empty", "/pool", &li, PoolPage(PoolView{Computing: -1})},
		{"pool-admin-empty", "/pool", &root, PoolPage(PoolView{Computing: -1})},
		{"provider-new", "/pool/providers/new", &root, NewProviderPage(NewProviderView{Server: portal, Form: Form{Values: map[string]string{"gpu_code": "x"}}.Refuse(models.Invalid("gpu_code", "must not be empty"))})},
		{"provider-code", "/pool/providers", &root, NewProviderPage(NewProviderView{Server: portal, Code: strings.Repeat("7QXK-", 12) + "7QXK", GPUCode: "7QXK-93ZD-11MW-A0PE", Until: later})},
		{"provider", "/pool/providers/1", &root, ProviderPage(sampleProvider(true))},
		{"provider-seen", "/pool/providers/1", &li, ProviderPage(sampleProvider(false))},
		{"provider-changed", "/pool/providers/1", &root, ProviderPage(changedProvider())},
		{"provider-remove", "/pool/providers/1/remove", &root, ConfirmPage(ConfirmRemoveProvider(sampleProvider(true).Facts, nil))},
		{"provider-revoke", "/pool/providers/1/revoke", &root, ConfirmPage(ConfirmRevokeAgent(sampleProvider(true).Facts))},
		{"device", "/pool/devices/1", &root, DevicePage(sampleDevice())},
		{"device-instance", "/pool/devices/7", &li, DevicePage(sampleInstance())},
		{"what-if", "/pool/planning", &root, PlanningPage(samplePlanning())},
		{"what-if-none", "/pool/planning", &root, PlanningPage(PlanningView{Done: true, Days: 30})},
		{"environments", "/environments", &root, EnvironmentsPage(EnvironmentsView{Rows: sampleEnvironments()})},
		{"environments-none", "/environments", &li, EnvironmentsPage(EnvironmentsView{})},
		{"environment-new", "/environments/new", &root, EnvironmentFormPage(EnvironmentFormView{})},
		{"environment-edit", "/environments/2/edit", &root, EnvironmentFormPage(EnvironmentFormView{ID: 2, Name: "This machine's Jupyter", Discovered: true, Form: Form{Version: 1, Values: map[string]string{"name": "This machine's Jupyter", "versions": "torch 2.9.0\nnumpy 2.3.1", "launch.cpu_milli": "2"}}})},
		{"people", "/people?q=ru", &root, PeoplePage(PeopleView{Rows: []models.User{root, li, other}, Query: "ru", Next: "/people?cursor=7"})},
		{"person-new", "/people/new", &root, InviteFormPage(InviteFormView{ByMail: true})},
		{"person", "/people/2", &root, PersonPage(PersonView{Person: li, Form: Form{Values: map[string]string{"name": "Li Wei"}, Version: 1}, Memberships: []PersonMembership{{1, "vision", "algorithm engineer"}}})},
		{"person-self", "/people/1", &root, PersonPage(PersonView{Person: root, Self: true, Form: Form{Values: map[string]string{"name": "Anna Berg"}, Version: 3}})},
		{"tokens", "/tokens", &li, TokensPage(TokensView{Form: NewTokenForm(), Rows: []models.AccessToken{{ID: 1, Name: "ci", Scopes: models.TokenScopes, CreatedAt: ago(90 * time.Hour), ExpiresAt: later, LastUsedAt: ptr(ago(time.Hour)), LastUsedFrom: "192.0.2.1"}, {ID: 2, Name: "old laptop", CreatedAt: ago(9000 * time.Hour), ExpiresAt: ago(time.Hour)}}})},
		{"tokens-new", "/tokens", &li, TokensPage(TokensView{Secret: "weir_" + strings.Repeat("k3Jd8", 8), NewName: "ci", Rows: []models.AccessToken{{ID: 1, Name: "ci", Scopes: []models.TokenScope{models.ScopeRead}, CreatedAt: now, ExpiresAt: later}}})},
		{"account", "/account", &li, AccountPage(AccountView{})},
		{"account-identity", "/account", &li, AccountPage(AccountView{Identities: sampleIdentities()})},
		{"person-identity", "/people/2", &root, PersonPage(PersonView{Person: li, Identities: sampleIdentities(), Form: Form{Values: map[string]string{"name": "Li Wei"}, Version: 1}})},
		{"identity-delete", "/people/2/identities/1/delete", &root, ConfirmPage(ConfirmDeleteIdentity(li, sampleIdentities()[0]))},
		{"audit", "/audit?action=update", &root, AuditPage(sampleAudit())},
		{"audit-empty", "/audit", &root, AuditPage(AuditView{CSV: "/api/v1/audit.csv"})},
		{"audit-none", "/audit?actor=nobody", &root, AuditPage(AuditView{CSV: "/api/v1/audit.csv?actor=nobody", Filtered: true, Form: Form{Values: map[string]string{"actor": "nobody", "object": "seat"}}})},
		{"audit-refused", "/audit?from=x", &root, AuditPage(AuditView{CSV: "/api/v1/audit.csv", Form: Form{Values: map[string]string{"from": "x"}}.Refuse(models.Invalid("from", "must be a date such as 2027-01-31"))})},
		{"error-404", "/nowhere", &li, ErrorPage(ErrorView{Status: 404, Err: *models.NotFound("workspace")})},
		{"error-403", "/people", &li, ErrorPage(ErrorView{Status: 403, Err: *models.Forbidden("Only administrators may see this.")})},
		{"error-409", "/projects/1", &li, ErrorPage(ErrorView{Status: 409, Err: *models.Conflict("Somebody else has changed the project.")})},
		{"error-500", "/pool", nil, ErrorPage(ErrorView{Status: 500})},
		{"gone", "/", nil, WorkspaceErrorPage(WorkspaceErrorView{State: models.StateStopped, Name: "segmentation", Portal: portal, Link: "/workspaces/5", LaunchAgain: "/launch?project_id=1"})},
		{"gone-none", "/", nil, WorkspaceErrorPage(WorkspaceErrorView{ErrorView: ErrorView{Status: 404, Err: *models.NotFound("workspace")}, Portal: portal})},
		{"api", "/api/docs", &li, APIPage(sampleAPI())},
	}, append(append(append(append(tableSamples(), fileSamples()...), docsSamples()...), usageSamples()...), append(append(append(append(notificationSamples(), reservationSamples()...), append(runSamples(), accessSamples()...)...), requestSamples()...), append(append(barrierSamples(), graphSamples()...), deploymentSamples()...)...)...)...)
}

func sampleIdentities() []models.Identity {
	return []models.Identity{{ID: 1, UserID: 2, Issuer: "https://id.example.org/realms/staff", Subject: "f3b1c9e2-0d5a-4c7e-9a56-6d7c1f3a9b10", Email: "li@example.org", Admin: true, SeenAt: ago(time.Hour)}}
}

// portal stands before the addresses on the one page that is shown elsewhere.
const portal = "https://weir.example.org"

func sampleAPI() APIView {
	return APIView{Title: "Weir API", Version: "v1", Description: models.Say("Everything the pages do, for programs."), Spec: "/api/v1/openapi.json", Groups: []APIGroup{
		{Tag: models.Say("Workspaces"), Description: models.Say("Launched environments."), Operations: []APIOperation{
			{ID: "list-workspaces", Method: "GET", Path: "/api/v1/workspaces", Summary: models.Say("List workspaces"), Parameters: []APIField{{"cursor", "query", "string", false, "where the last page ended"}, {"state", "query", "live | ended | all", false, ""}}, Responses: []APIResponse{{"200", "OK", []APIField{{"items", "", "array of Workspace", true, ""}}}, {"401", "Not signed in", nil}}},
			{ID: "launch-workspace", Method: "POST", Path: "/api/v1/workspaces", Summary: models.Say("Launch workspace"), Body: []APIField{{"project_id", "", "integer", true, "the project"}, {"cores", "", "integer", false, "GPU cores per GPU"}}, Responses: []APIResponse{{"201", "Created", nil}}}}},
		{Tag: models.Say("Pool"), Operations: []APIOperation{{ID: "get-pool", Method: "GET", Path: "/api/v1/pool", Summary: models.Say("View the pool")}}},
	}}
}
