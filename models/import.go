package models

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
)

// Record is one line of a table that is imported: its cells by their column's
// name. A column that the table does not have is absent.
type Record struct {
	Line  int // in the file, from 1
	Cells map[string]string
}

// Import asks for a table to be imported, or, as a dry run, what that would
// do. Plan is that of the dry run which somebody has seen.
type Import struct {
	Records []Record
	DryRun  bool
	Plan    string
}

// What becomes of a row that is imported.
const (
	RowAdded     = "added"
	RowChanged   = "changed"
	RowUnchanged = "unchanged"
	RowRefused   = "refused"
)

// ImportedRow is what becomes of one row.
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

// Change notes a changed value; the same value is no change.
func (r *ImportedRow) Change(column, from, to string) {
	if from != to {
		r.Changes = append(r.Changes, CellChange{column, from, to})
	}
}

// Refuse notes why the row cannot be imported.
func (r *ImportedRow) Refuse(fields ...Field) {
	r.Outcome, r.Changes = RowRefused, nil
	r.Refusals = append(r.Refusals, fields...)
}

// ImportReport is what becomes, or would become, of all rows.
type ImportReport struct {
	Rows []ImportedRow
	Plan string // names just these outcomes
	Done bool
}

// Count tells how many rows have an outcome.
func (r ImportReport) Count(outcome string) (n int) {
	for _, row := range r.Rows {
		if row.Outcome == outcome {
			n++
		}
	}
	return n
}

// Seal names the outcomes, about the things that of says, by their hash.
func (r *ImportReport) Seal(of string) error {
	b, err := json.Marshal(r.Rows)
	sum := sha256.Sum256(append([]byte(of+"\n"), b...))
	r.Plan = hex.EncodeToString(sum[:16])
	return err
}

// Refused is the refusal of a table with refused rows, by line and column; nil
// when there is none.
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
