package handlers

import (
	"context"

	"weir/models"
)

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

func imported(ctx context.Context, t tableImport, in TableInput, err error) (*Response[ImportReport], error) {
	if err != nil {
		return nil, err
	}
	report, err := t.take(ctx, in.CSV, in.DryRun, in.Plan)
	if err != nil {
		return nil, err
	}
	return &Response[ImportReport]{importReport(report)}, nil
}
