package web

import (
	"time"

	"weir/models"
)

func sampleExtensions() []models.Extension {
	soon := now.Add(6*24*time.Hour + time.Hour)
	period := models.Extension{Kind: models.RequestPeriod, ProjectID: 1, Project: "vision", EndsAt: soon, Later: soon.Add(720 * time.Hour), Reason: models.Say("The work continues after the project's period of use ends.")}
	deadline := period
	deadline.Kind, deadline.MemberID, deadline.EndsAt = models.RequestDeadline, 12, now.Add(-time.Hour)
	return []models.Extension{period, deadline}
}

func sampleFormerMembers(manage bool) FormerMembersView {
	gone := models.Member{ID: 9, ProjectID: 1, UserID: 4, RemovedAt: ptr(ago(48 * time.Hour))}
	handed := models.FormerMember{Member: gone, UserName: "Ruiz", UserEmail: "ruiz@example.org", RecipientID: ptr(int64(12)), RecipientName: "Li Wei", HandoverAt: ptr(ago(time.Hour))}
	other := models.FormerMember{Member: gone, UserName: "Kim", UserEmail: "kim@example.org"}
	other.ID, other.RemovedAt, other.Until = 10, nil, ptr(ago(time.Hour))
	return FormerMembersView{ProjectID: 1, Project: "vision", Rows: []models.FormerMember{handed, other}, CanManage: manage, Next: "/projects/1/former-members?cursor=10"}
}

// periodSamples are the pages of what ends, and of who has left.
func periodSamples() []sample {
	near, asked, direct := sampleExtensions(), sampleExtensions(), sampleExtensions()
	for i := range asked {
		asked[i].Pending, asked[i].Own = 4, i == 0
		direct[i].Direct = true
	}
	project, seen := sampleProject(), sampleProject()
	project.Extensions, project.FormerMembers = direct, sampleFormerMembers(true)
	seen.CanEdit, seen.CanManage, seen.Extensions, seen.FormerMembers = false, false, asked, sampleFormerMembers(false)
	workspace := sampleWorkspace(models.StateRunning)
	workspace.ScheduledStop = &ScheduledStop{At: now.Add(18 * time.Hour), Reason: models.Say("the project's period of use ends then"), Extension: &near[0]}
	workspace.Directories = append(workspace.Directories, Directory{Path: "/notebook/1/9", Writable: true,
		Note: models.Say("Handed over from a former member. To get write access, restart workspaces that are already running.")})
	notifications := []models.Notification{
		{ID: 8, Kind: "period.ending", Text: models.Say("The project %s ends on %s. Its workspaces, runs and deployments will be stopped then. Its files are kept and remain readable.", "vision", "2026-07-01"), Link: "/projects/1", CreatedAt: ago(time.Hour)},
		{ID: 7, Kind: "deadline.ended", Text: models.Say("Your membership in %s ended on %s. Your workspaces, runs and deployments there were stopped. Your files are kept.", "vision", "2026-07-01"), CreatedAt: ago(2 * time.Hour)},
	}
	measured := sampleWorkspace(models.StateRunning)
	measured.Now, measured.CanRestart = now, true
	for i := range 40 {
		measured.Telemetry = append(measured.Telemetry, models.WorkspaceTelemetry{At: ago(time.Duration(40-i) * time.Minute), CPUMilli: int64(i * 40), MemoryMiB: int64(900 + i), GPUPercent: ptr(int64(i))})
	}
	found := SearchView{Text: "vision", Form: Form{Values: map[string]string{"q": "vision"}}, More: []string{"workspace"}, Results: []SearchResult{
		{Kind: "project", ID: 1, Name: "vision"}, {Kind: "workspace", ID: 5, Name: "notebook", Detail: "vision · Li Wei", State: "running"},
		{Kind: "user", ID: 3, Name: "Li Wei", Detail: li.Email}, {Kind: "provider", ID: 1, Name: "node-1", State: "online"}}}
	formerMember := sampleFormerMembers(true).Rows[1]
	return []sample{
		{"workspace-idle", "/workspaces/5", &li, WorkspacePage(idleWorkspace())},
		{"home-ending", "/", &li, HomePage(HomeView{Extensions: near, Projects: []ProjectCard{{ID: 1, Name: "vision", Role: "lead", Meters: LimitMeters(inUse, models.Resources{}, limit), Active: true}}})},
		{"project-ending", "/projects/1", &root, ProjectPage(project)},
		{"project-ending-asked", "/projects/1", &li, ProjectPage(seen)},
		{"workspace-log", "/workspaces/5/log", &li, WorkspaceLogPage(WorkspaceLogView{ID: 5, Name: "notebook", Log: "[I] Kernel started\n", Live: true})},
		{"workspace-log-empty", "/workspaces/5/log", &li, WorkspaceLogPage(WorkspaceLogView{ID: 5, Name: "notebook"})},
		{"workspace-measured", "/workspaces/5", &li, WorkspacePage(measured)},
		{"workspace-restart", "/workspaces/5/restart", &li, ConfirmPage(ConfirmRestart(measured.Workspace.Workspace, Kernels{2, 1}))},
		{"search", "/search?q=vision", &root, SearchPage(found)},
		{"search-none", "/search?q=x", &li, SearchPage(SearchView{Text: "x", Form: Form{Values: map[string]string{"q": "x"}}})},
		{"workspace-rename", "/workspaces/5/rename", &li, RenamePage(RenameView{Name: "notebook", Action: "/workspaces/5/rename", Back: "/workspaces/5", Form: Form{}.Refuse(
			models.InvalidFields(models.Field{Name: "name", Reason: models.Say("must not be empty")}))})},
		{"workspace-stopping", "/workspaces/5", &li, WorkspacePage(workspace)},
		{"notifications-ending", "/notifications", &li, NotificationsPage(NotificationsView{Rows: notifications, Unread: 2, First: true, Extensions: map[int64]models.Extension{8: near[0], 7: asked[0]}})},
		{"leavers", "/projects/1/former-members", &root, FormerMembersPage(sampleFormerMembers(true))},
		{"leavers-none", "/projects/1/former-members", &li, FormerMembersPage(FormerMembersView{ProjectID: 1, Project: "vision"})},
		{"handover", "/projects/1/members/10/handover", &root, HandoverPage(HandoverView{Project: project.Project, FormerMember: formerMember, Recipients: []models.Recipient{{ID: 12, UserName: "Li Wei", UserEmail: li.Email}},
			Form: Form{}.Refuse(models.Invalid("to_member_id", "is not a current member of this project"))})},
		{"handover-nobody", "/projects/1/members/10/handover", &root, HandoverPage(HandoverView{Project: project.Project, FormerMember: formerMember})},
	}
}
