package handlers

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
	"weir/pool/projects"
)

func (a rest) importOperations(s section) {
	register(a, s, route{http.MethodPost, "/projects/{id}/preview", 200, "preview", "Tell what a change of a role, a member or the quota would make of the quota, and whether it would be refused; nothing is changed"}, a.preview)
	register(a, s, route{http.MethodGet, "/projects/{id}/members.csv", 200, "download-members", "Download a project's present members as CSV, in the columns in which they can be imported"}, a.downloadMembers)
	describeDownload(s, "/projects/{id}/members.csv")
	register(a, s, route{http.MethodPost, "/projects/{id}/members/import", 200, "import-members", "Add and change members by a table in CSV, all or none, or tell what that would do"}, a.importMembers)
}

// Preview is what a change would make of a project's quota.
type Preview struct {
	Fits      bool           `json:"fits" doc:"whether the change would be accepted now; of a change that you may not make, whether its numbers would fit"`
	Resources []PreviewRow   `json:"resources"`
	Members   int64          `json:"members" doc:"whose promise changes"`
	Room      *int64         `json:"room,omitempty" doc:"members that could be added in the role afterwards; absent: as many as there are"`
	Holders   []Holder       `json:"holders,omitempty" doc:"members who hold more now than the new peak"`
	Detail    string         `json:"detail,omitempty" doc:"why it would be refused"`
	Errors    []ProblemField `json:"errors,omitempty" doc:"each field that would be refused, and why"`
}

// PreviewRow is what a change would make of one resource.
type PreviewRow struct {
	Resource string `json:"resource" enum:"gpu_cores,gpu_memory_mib,cpu_milli,memory_mib,storage_mib"`
	Before   int64  `json:"before" doc:"sum of the members' peaks now"`
	After    int64  `json:"after" doc:"their sum with the change"`
	Quota    int64  `json:"quota"`
	Left     int64  `json:"left" doc:"quota less after; negative when the quota would be exceeded"`
	Over     bool   `json:"over" doc:"it is why the change would be refused"`
}

// Holder is a member that holds more than a new peak would allow.
type Holder struct {
	MemberID int64          `json:"member_id"`
	Name     string         `json:"name"`
	Excess   []HolderExcess `json:"excess"`
}

// HolderExcess is one resource of which more is held.
type HolderExcess struct {
	Resource string `json:"resource"`
	Held     int64  `json:"held"`
	Peak     int64  `json:"peak"`
}

func previewOf(p projects.Preview) Preview {
	v := Preview{Fits: p.Refused == nil, Members: p.Members, Resources: shown(p.Rows, func(r projects.PreviewRow) PreviewRow {
		return PreviewRow{r.Name, r.Before, r.Value, r.Quota, r.Remaining(), r.Over}
	}), Holders: shown(p.Holders, func(h projects.Holder) Holder {
		return Holder{h.MemberID, h.Name, shown(h.Excess, func(e models.Excess) HolderExcess { return HolderExcess{e.Name, e.Value, e.Limit} })}
	})}
	if p.Fits >= 0 {
		v.Room = &p.Fits
	}
	if p.Refused != nil {
		refusal := problemOf(p.Refused)
		v.Detail, v.Errors = refusal.Detail, refusal.Errors
	}
	return v
}

func (a rest) preview(ctx context.Context, in *CreateIn[projects.PreviewInput]) (*Answer[Preview], error) {
	p, err := a.Ledger.Preview(ctx, actorOf(ctx), in.ID, in.Body)
	return &Answer[Preview]{previewOf(p)}, err
}

func (a rest) downloadMembers(ctx context.Context, in *ByID) (*huma.StreamResponse, error) {
	return downloaded(a, ctx, "weir-members.csv", projects.MemberColumns, projects.MemberCells, func(m projects.MemberView) int64 { return m.ID },
		func(ctx context.Context, page models.Page) ([]projects.MemberView, error) {
			return a.Ledger.Members(ctx, actorOf(ctx), in.ID, page)
		})
}

// TableInput is a table to import.
type TableInput struct {
	CSV    string `json:"csv" maxLength:"1048576" doc:"a line of column names, then one row a line; UTF-8, at most 1 MiB and 2000 rows"`
	DryRun bool   `json:"dry_run,omitempty" doc:"only tell what would become of each row"`
	Plan   string `json:"plan,omitempty" maxLength:"64" doc:"of the dry run; the import is refused when it would come to anything else"`
}

// ImportReport is what becomes, or would become, of a table's rows.
type ImportReport struct {
	Done      bool          `json:"done" doc:"whether it was imported; false after a dry run"`
	Plan      string        `json:"plan" doc:"names just these outcomes; send it to import them"`
	Added     int           `json:"added"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Refused   int           `json:"refused" doc:"while there is one, nothing can be imported"`
	Rows      []ImportedRow `json:"rows"`
}

// ImportedRow is what becomes of one row.
type ImportedRow struct {
	Line    int                 `json:"line" doc:"in the table, from 1"`
	Email   string              `json:"email"`
	Outcome string              `json:"outcome" enum:"added,changed,unchanged,refused"`
	Changes []models.CellChange `json:"changes,omitempty"`
	Errors  []ProblemField      `json:"errors,omitempty" doc:"why it is refused, by column"`
}

func importReport(r models.ImportReport) ImportReport {
	return ImportReport{Done: r.Done, Plan: r.Plan, Added: r.Count(models.RowAdded), Changed: r.Count(models.RowChanged),
		Unchanged: r.Count(models.RowUnchanged), Refused: r.Count(models.RowRefused), Rows: shown(r.Rows, func(row models.ImportedRow) ImportedRow {
			return ImportedRow{row.Line, row.Email, row.Outcome, row.Changes,
				shown(row.Refusals, func(f models.Field) ProblemField { return ProblemField{f.Name, f.Reason.String()} })}
		})}
}

func (a rest) importMembers(ctx context.Context, in *CreateIn[TableInput]) (*Answer[ImportReport], error) {
	t, err := a.membersImport(ctx, in.ID)
	return imported(ctx, t, in.Body, err)
}

func (a rest) importUsers(ctx context.Context, in *Create[TableInput]) (*Answer[ImportReport], error) {
	t, err := a.peopleImport(ctx, 0)
	return imported(ctx, t, in.Body, err)
}

func imported(ctx context.Context, t tableImport, in TableInput, err error) (*Answer[ImportReport], error) {
	if err != nil {
		return nil, err
	}
	report, err := t.take(ctx, in.CSV, in.DryRun, in.Plan)
	if err != nil {
		return nil, err
	}
	return &Answer[ImportReport]{importReport(report)}, nil
}
