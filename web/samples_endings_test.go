package web

import (
	"time"

	"weir/models"
)

func sampleExtensions() []models.Extension {
	soon := now.Add(6*24*time.Hour + time.Hour)
	period := models.Extension{Kind: models.AskForPeriod, ProjectID: 1, Project: "vision", EndsAt: soon, Later: soon.Add(720 * time.Hour), Reason: models.Say("The work goes on after the end of the project's period.")}
	deadline := period
	deadline.Kind, deadline.MemberID, deadline.EndsAt = models.AskForDeadline, 12, now.Add(-time.Hour)
	return []models.Extension{period, deadline}
}

func sampleLeavers(manage bool) LeaversView {
	gone := models.Member{ID: 9, ProjectID: 1, UserID: 4, RemovedAt: ptr(ago(48 * time.Hour))}
	handed := models.Leaver{Member: gone, UserName: "Ruiz", UserEmail: "ruiz@example.org", HeirID: ptr(int64(12)), HeirName: "Li Wei", GivenAt: ptr(ago(time.Hour))}
	other := models.Leaver{Member: gone, UserName: "Kim", UserEmail: "kim@example.org"}
	other.ID, other.RemovedAt, other.Until = 10, nil, ptr(ago(time.Hour))
	return LeaversView{ProjectID: 1, Project: "vision", Rows: []models.Leaver{handed, other}, CanManage: manage, Next: "/projects/1/leavers?cursor=10"}
}

// periodSamples are the pages of what ends, and of who has left.
func periodSamples() []sample {
	near, asked, direct := sampleExtensions(), sampleExtensions(), sampleExtensions()
	for i := range asked {
		asked[i].Pending, asked[i].Own = 4, i == 0
		direct[i].Direct = true
	}
	project, seen := sampleProject(), sampleProject()
	project.Extensions, project.Leavers = direct, sampleLeavers(true)
	seen.CanEdit, seen.CanManage, seen.Extensions, seen.Leavers = false, false, asked, sampleLeavers(false)
	workspace := sampleWorkspace(models.StateRunning)
	workspace.Stopping = &Stopping{At: now.Add(18 * time.Hour), Why: models.Say("the project's period of use ends then"), Extension: &near[0]}
	workspace.Directories = append(workspace.Directories, Directory{Path: "/notebook/1/9", Writable: true,
		Note: models.Say("Handed over by who has left. A workspace that was started before has to be started anew to write it.")})
	notices := []models.Notice{
		{ID: 8, Kind: "period.ending", Text: models.Say("The project %s ends on %s. Its workspaces are stopped then; its files stay and can be read.", "vision", "2026-07-01"), Link: "/projects/1", CreatedAt: ago(time.Hour)},
		{ID: 7, Kind: "deadline.ended", Text: models.Say("Your participation in %s ended on %s. Your workspaces there are stopped; your files stay.", "vision", "2026-07-01"), CreatedAt: ago(2 * time.Hour)},
	}
	leaver := sampleLeavers(true).Rows[1]
	return []sample{
		{"home-ending", "/", &li, HomePage(HomeView{Extensions: near, CanLaunch: true, Projects: []ProjectCard{{ID: 1, Name: "vision", Role: "lead", Meters: PeakMeters(held, models.Resources{}, peak), Active: true}}})},
		{"project-ending", "/projects/1", &root, ProjectPage(project)},
		{"project-ending-asked", "/projects/1", &li, ProjectPage(seen)},
		{"workspace-stopping", "/workspaces/5", &li, WorkspacePage(workspace)},
		{"notices-ending", "/notices", &li, NoticesPage(NoticesView{Rows: notices, Unread: 2, Extensions: map[int64]models.Extension{8: near[0], 7: asked[0]}})},
		{"leavers", "/projects/1/leavers", &root, LeaversPage(sampleLeavers(true))},
		{"leavers-none", "/projects/1/leavers", &li, LeaversPage(LeaversView{ProjectID: 1, Project: "vision"})},
		{"handover", "/projects/1/members/10/handover", &root, HandoverPage(HandoverView{Project: project.Project, Leaver: leaver, Heirs: []models.Heir{{ID: 12, UserName: "Li Wei", UserEmail: li.Email}},
			Form: Form{}.Refuse(models.Invalid("to_member_id", "is not a present member of this project"))})},
		{"handover-nobody", "/projects/1/members/10/handover", &root, HandoverPage(HandoverView{Project: project.Project, Leaver: leaver})},
	}
}
