package policies

import (
	"context"
	"errors"
	"fmt"

	"weir/models"
	"weir/models/store"
)

// ImportRow imports one record of a table within a transaction and returns the
// outcome. A refused row has changed nothing; an error ends the import.
type ImportRow func(models.Record) (models.ImportedRow, error)

// errDryRun rolls the transaction of a dry run back.
var errDryRun = errors.New("only a dry run")

// Import imports all rows of a table in one transaction, in their order: all of
// them or none. A dry run is the same transaction, rolled back at its end, so
// that its report is exact. The import itself must come to the outcomes of the
// dry run's plan, or changes nothing.
func (a *Access) Import(ctx context.Context, db *store.Store, actor Actor, project int64, right Right, in models.Import,
	begin func(*store.Queries) (ImportRow, error)) (report models.ImportReport, err error) {
	err = a.Write(ctx, db, actor, project, right, func(q *store.Queries) error {
		if !in.DryRun && in.Plan == "" {
			return models.Invalid("plan", "is required; do a dry run first and send the plan that it returns")
		}
		report = models.ImportReport{}
		importRow, err := begin(q)
		if err != nil {
			return err
		}
		if err := importRows(&report, in.Records, importRow); err != nil {
			return err
		}
		if err := report.SetPlan(fmt.Sprint(right, project)); err != nil {
			return err
		}
		switch {
		case in.DryRun:
			return errDryRun
		case report.Plan != in.Plan:
			return models.Conflict("The result of the import has changed since the dry run. Nothing was imported. Review the rows again.")
		}
		return report.Refused()
	})
	if errors.Is(err, errDryRun) {
		return report, nil
	}
	report.Done = err == nil
	return report, err
}

func importRows(report *models.ImportReport, records []models.Record, importRow ImportRow) error {
	lines := map[string]int{} // by email
	for _, r := range records {
		var p models.Problems
		email := models.CheckEmail("email", r.Cells["email"], &p)
		row := models.ImportedRow{Line: r.Line, Email: email}
		if first, again := lines[email]; again && len(p) == 0 {
			p.Add("email", "is already in line %d", first)
		}
		lines[email] = r.Line
		if len(p) > 0 {
			row.Refuse(p...)
		} else {
			var err error
			r.Cells["email"] = email
			if row, err = importRow(r); err != nil {
				return err
			}
		}
		report.Rows = append(report.Rows, row)
	}
	return nil
}

// AsRefusal separates refusals of a change, because of its input, the state or
// permissions, from other errors.
func AsRefusal(err error) (*models.Error, error) {
	if e, ok := errors.AsType[*models.Error](err); ok {
		switch e.Kind {
		case models.KindInvalid, models.KindNoCapacity, models.KindConflict, models.KindForbidden:
			return e, nil
		}
	}
	return nil, err
}

// RefuseImportedRow records in a row why a service refused it, and returns other errors.
// columns maps the service's fields to columns.
func RefuseImportedRow(row *models.ImportedRow, err error, columns map[string]string) error {
	e, err := AsRefusal(err)
	if e == nil {
		return err
	}
	if len(e.Fields) == 0 {
		row.Refuse(models.Field{Reason: e.Message})
	}
	for _, f := range e.Fields {
		if column, ok := columns[f.Name]; ok {
			f.Name = column
		}
		row.Refuse(f)
	}
	return nil
}
