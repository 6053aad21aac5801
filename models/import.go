package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// Record is one line of a table to import: its cells by column name. Columns
// that the table does not have are absent.
type Record struct {
	Line  int // in the file, from 1
	Cells map[string]string
}

// Import is a table to import, possibly as a dry run. Plan is that of the dry
// run which was reviewed.
type Import struct {
	Records []Record
	DryRun  bool
	Plan    string
}

// Outcomes of an imported row.
const (
	RowAdded     = "added"
	RowChanged   = "changed"
	RowUnchanged = "unchanged"
	RowRefused   = "refused"
)

// ImportedRow is the outcome of one row.
type ImportedRow struct {
	Line     int          `json:"line"`
	Email    string       `json:"email"`
	Outcome  string       `json:"outcome"`
	Changes  []CellChange `json:"changes"`
	Refusals []Field      `json:"refusals"` // named by the column
}

// CellChange is one value that a row changes.
type CellChange struct {
	Column string `json:"column"`
	From   string `json:"from"`
	To     string `json:"to"`
}

// Change records a changed value; an equal value is no change.
func (r *ImportedRow) Change(column, from, to string) {
	if from != to {
		r.Changes = append(r.Changes, CellChange{column, from, to})
	}
}

// Refuse records why the row cannot be imported.
func (r *ImportedRow) Refuse(fields ...Field) {
	r.Outcome, r.Changes = RowRefused, nil
	r.Refusals = append(r.Refusals, fields...)
}

// ImportReport is the outcome of all rows, of an import or a dry run.
type ImportReport struct {
	Rows []ImportedRow
	Plan string // a digest of the outcomes
	Done bool
}

// Count counts the rows with an outcome.
func (r ImportReport) Count(outcome string) (n int) {
	for _, row := range r.Rows {
		if row.Outcome == outcome {
			n++
		}
	}
	return n
}

// SetPlan sets Plan to a digest of the target and the outcomes.
func (r *ImportReport) SetPlan(target string) error {
	b, err := json.Marshal(r.Rows)
	sum := sha256.Sum256(append([]byte(target+"\n"), b...))
	r.Plan = hex.EncodeToString(sum[:16])
	return err
}

// Refused returns the refused fields of all rows as one error, by line and
// column; nil without any.
func (r ImportReport) Refused() error {
	const most = 50
	var p Problems
	for _, row := range r.Rows {
		for _, f := range row.Refusals {
			name := "line " + strconv.Itoa(row.Line)
			if f.Name != "" {
				name += "." + f.Name
			}
			if len(p) < most {
				p = append(p, Field{Name: name, Reason: f.Reason})
			}
		}
	}
	return p.Err()
}
