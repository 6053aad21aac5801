package handlers

import (
	"context"

	"weir/handlers/sheet"
	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

// tableImport is what differs between the tables that can be imported.
type tableImport struct {
	columns, needed []string
	run             func(context.Context, models.Import) (models.ImportReport, error)
	view            web.ImportView // what its page is called, and where it is
}

// take reads a table and imports it, or tells what that would do.
func (t tableImport) take(ctx context.Context, text string, dryRun bool, plan string) (models.ImportReport, error) {
	records, err := sheet.Read(text, t.columns, t.needed)
	if err != nil {
		return models.ImportReport{}, err
	}
	return t.run(ctx, models.Import{Records: records, DryRun: dryRun, Plan: plan})
}

// membersImport is the import of a project's members, for who may change
// them.
func (a *App) membersImport(ctx context.Context, project int64) (t tableImport, err error) {
	actor := actorOf(ctx)
	if err := a.Access.Check(actor, project, policies.MemberWrite); err != nil {
		return t, err
	}
	p, err := a.Projects.Project(ctx, actor, project)
	t = tableImport{columns: projects.MemberColumns, needed: projects.MemberColumnsNeeded, view: web.ImportMembers(p.Project, projects.MemberColumns)}
	t.run = func(ctx context.Context, in models.Import) (models.ImportReport, error) {
		return a.Projects.ImportMembers(ctx, actor, project, in)
	}
	return t, err
}

// peopleImport is the import of people, for administrators.
func (a *App) peopleImport(ctx context.Context, _ int64) (t tableImport, err error) {
	actor := actorOf(ctx)
	t = tableImport{columns: policies.PeopleColumns, needed: policies.PeopleColumnsNeeded, view: web.ImportPeople(policies.PeopleColumns)}
	t.run = func(ctx context.Context, in models.Import) (models.ImportReport, error) {
		report, err := a.Accounts.ImportPeople(ctx, actor, in)
		if report.Done {
			a.Wake()
		}
		return report, err
	}
	return t, a.Access.Check(actor, policies.Platform, policies.UserWrite)
}
