package web

import (
	"context"
	"strings"

	"weir/models"
)

// ImportView imports a table. Fields: csv, plan; the file is sent beside them.
type ImportView struct {
	Title    models.Text
	Below    string // of what
	About    models.Text
	Action   string
	Back     string
	Download string // where the table can be had as it is
	Columns  []string
	Form     Form
	Rows     []models.ImportedRow // the result for each; none before the preview
}

// ImportMembers is the import of a project's members.
func ImportMembers(p models.Project, columns []string) ImportView {
	at := projectPath(p.ID)
	return ImportView{Title: models.Say("Import members"), Below: p.Name, Action: at + "/members/import", Back: at,
		Download: "/api/v1" + at + "/members.csv", Columns: columns,
		About: models.Say("Each row adds or updates a member. No members are removed. The columns email and role are required, and each person must already have an account. Write dates as 2027-01-31. The column until is the last day with access; leave it empty for no end date.")}
}

// ImportPeople is the import of people.
func ImportPeople(columns []string) ImportView {
	return ImportView{Title: models.Say("Import people"), Action: "/people/import",
		Back: "/people", Download: "/api/v1/users.csv", Columns: columns,
		About: models.Say("Each row adds or updates an account. No accounts are removed or disabled. The columns email and name are required; admin and auditor are yes or no. A new account has no password: set one on the person's page, or use an identity provider that may link accounts.")}
}

func (v ImportView) columns() string { return strings.Join(v.Columns, ",") }

func (v ImportView) count(outcome string) int {
	return models.ImportReport{Rows: v.Rows}.Count(outcome)
}

// effective is how many rows would change something.
func (v ImportView) effective() int { return v.count(models.RowAdded) + v.count(models.RowChanged) }

func (v ImportView) importable() bool { return v.count(models.RowRefused) == 0 && v.effective() > 0 }

func (v ImportView) counts(ctx context.Context) string {
	return T(ctx, "%d to add, %d to update, %d unchanged, %d refused.", v.count(models.RowAdded), v.count(models.RowChanged),
		v.count(models.RowUnchanged), v.count(models.RowRefused))
}

var outcomeWords = map[string]models.Text{
	models.RowAdded:     models.Say("added"),
	models.RowChanged:   models.Say("updated"),
	models.RowUnchanged: models.Say("unchanged"),
	models.RowRefused:   models.Say("refused"),
}

func outcomeClass(outcome string) string {
	switch outcome {
	case models.RowAdded, models.RowChanged:
		return "ok"
	case models.RowRefused:
		return "bad"
	}
	return "off"
}

// changed formats a changed cell.
func changed(ctx context.Context, c models.CellChange) string {
	if c.From == "" {
		return T(ctx, "%s: %s", c.Column, c.To)
	}
	if c.To == "" {
		return T(ctx, "%s: %s → none", c.Column, c.From)
	}
	return T(ctx, "%s: %s → %s", c.Column, c.From, c.To)
}

// refusal formats why a cell was refused.
func refusal(ctx context.Context, f models.Field) string {
	if f.Name == "" {
		return TT(ctx, f.Reason)
	}
	return T(ctx, "%s: %s", f.Name, TT(ctx, f.Reason))
}
