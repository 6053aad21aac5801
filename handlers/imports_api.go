package handlers

import (
	"context"

	"weir/models"
)

// TableInput is a table to import.
type TableInput struct {
	CSV    string `json:"csv" maxLength:"1048576" doc:"CSV data with a header row; UTF-8, at most 1 MiB and 2000 rows"`
	DryRun bool   `json:"dry_run,omitempty" doc:"validate without applying changes"`
	Plan   string `json:"plan,omitempty" maxLength:"64" doc:"plan returned by the dry run; the import is rejected if the outcome would differ"`
}

// ImportReport is the result, or the preview, of an import.
type ImportReport struct {
	Done      bool          `json:"done" doc:"the import was applied; false for a dry run"`
	Plan      string        `json:"plan" doc:"identifier of this outcome; send it with the import"`
	Added     int           `json:"added"`
	Changed   int           `json:"changed"`
	Unchanged int           `json:"unchanged"`
	Refused   int           `json:"refused" doc:"number of invalid rows; must be 0 to import"`
	Rows      []ImportedRow `json:"rows"`
}

// ImportedRow is the result for one row.
type ImportedRow struct {
	Line    int                 `json:"line" doc:"line number, from 1"`
	Email   string              `json:"email"`
	Outcome string              `json:"outcome" enum:"added,changed,unchanged,refused"`
	Changes []models.CellChange `json:"changes,omitempty"`
	Errors  []ProblemField      `json:"errors,omitempty" doc:"validation errors by column"`
}

func importReport(r models.ImportReport) ImportReport {
	return ImportReport{Done: r.Done, Plan: r.Plan, Added: r.Count(models.RowAdded), Changed: r.Count(models.RowChanged),
		Unchanged: r.Count(models.RowUnchanged), Refused: r.Count(models.RowRefused), Rows: models.Map(r.Rows,
			func(row models.ImportedRow) ImportedRow {
				return ImportedRow{row.Line, row.Email, row.Outcome, row.Changes,
					models.Map(row.Refusals, func(f models.Field) ProblemField { return ProblemField{f.Name, f.Reason.String()} })}
			})}
}

func imported(ctx context.Context, t tableImport, in TableInput, err error) (*Response[ImportReport], error) {
	if err != nil {
		return nil, err
	}
	report, err := t.take(ctx, in.CSV, in.DryRun, in.Plan)
	return &Response[ImportReport]{importReport(report)}, err
}
