package handlers

import (
	"context"

	"weir/handlers/sheet"
	"weir/models"
	"weir/policies"
	"weir/pool/projects"
	"weir/web"
)

// tableImport describes a CSV import.
type tableImport struct {
	columns, needed []string
	run             func(context.Context, models.Import) (models.ImportReport, error)
	view            web.ImportView // its page
}

// take reads a table and imports it, or previews the import.
func (t tableImport) take(ctx context.Context, text string, dryRun bool, plan string) (models.ImportReport, error) {
	records, err := sheet.Read(text, t.columns, t.needed)
	if err != nil {
		return models.ImportReport{}, err
	}
	return t.run(ctx, models.Import{Records: records, DryRun: dryRun, Plan: plan})
}

// membersImport is the import of a project's members.
func (a *App) membersImport(ctx context.Context, project int64) (t tableImport, err error) {
	actor := actorOf(ctx)
	form, err := a.Projects.ImportForm(ctx, actor, project)
	t = tableImport{columns: projects.MemberColumns, needed: projects.MemberColumnsNeeded,
		view: web.ImportMembers(form.Project.Project, projects.MemberColumns)}
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
		return a.Accounts.ImportPeople(ctx, actor, in)
	}
	return t, a.Accounts.CheckImport(actor)
}
