package sheet

import (
	"encoding/csv"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/models"
)

// What a table to import may have.
const (
	MaxBytes = 1 << 20
	maxRows  = 2000
	maxCell  = 1000 // bytes
)

// Read parses a CSV table with a header row. Columns can be in any order; needed ones
// are required. Where the header has semicolons, and no commas, they separate the cells, as in
// what spreadsheets save in many languages. Apostrophes that the writer added are removed.
func Read(text string, columns, needed []string) ([]models.Record, error) {
	if len(text) > MaxBytes {
		return nil, models.Invalid("csv", "must be at most %s", "1 MiB")
	}
	text = strings.TrimPrefix(text, "\ufeff")
	if line := malformedLine(text); line > 0 {
		return nil, models.Invalid("csv", "line %d is not valid UTF-8; save the file as UTF-8", line)
	}
	if strings.TrimSpace(text) == "" {
		return nil, models.Invalid("csv", "must not be empty")
	}
	r := csv.NewReader(strings.NewReader(text))
	if header, _, _ := strings.Cut(strings.TrimLeft(text, "\r\n"), "\n"); strings.Contains(header, ";") && !strings.Contains(header, ",") {
		r.Comma = ';'
	}
	names, err := r.Read()
	if err != nil {
		return nil, problemOf(err)
	}
	if names, err = columnsOf(names, columns, needed); err != nil {
		return nil, err
	}
	return recordsOf(r, names)
}

// malformedLine is the first line that is no UTF-8, or contains NUL; 0 for none.
func malformedLine(text string) int {
	line := 1
	for i, c := range text {
		switch {
		case c == '\n':
			line++
		case c == 0, c == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd"):
			return line
		}
	}
	return 0
}

func columnsOf(names, columns, needed []string) ([]string, error) {
	all := strings.Join(columns, ",")
	seen := make([]string, len(names))
	for i, name := range names {
		name = strings.ToLower(strings.TrimSpace(name))
		switch {
		case !slices.Contains(columns, name):
			return nil, models.Invalid("csv", "line %d has the unknown column %s; valid columns are %s, separated by commas", 1, truncated(name),
				all)
		case slices.Contains(seen[:i], name):
			return nil, models.Invalid("csv", "line %d has the column %s twice", 1, name)
		}
		seen[i] = name
	}
	for _, name := range needed {
		if !slices.Contains(seen, name) {
			return nil, models.Invalid("csv", "line %d is missing the column %s; valid columns are %s", 1, name, all)
		}
	}
	return seen, nil
}

func recordsOf(r *csv.Reader, columns []string) (records []models.Record, err error) {
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, problemOf(err)
		}
		line, _ := r.FieldPos(0)
		if len(records) == maxRows {
			return nil, models.Invalid("csv", "must have at most %d rows; line %d exceeds this", maxRows, line)
		}
		record := models.Record{Line: line, Cells: make(map[string]string, len(columns))}
		for i, name := range columns {
			if len(cells[i]) > maxCell {
				return nil, models.Invalid("csv", "line %d: %s must be at most %d bytes", line, name, maxCell)
			}
			record.Cells[name] = strings.TrimSpace(unescapeFormula(cells[i]))
		}
		records = append(records, record)
	}
	if len(records) == 0 {
		return nil, models.Invalid("csv", "must have at least one row below the header")
	}
	return records, nil
}

// problemOf converts an error of the CSV reader.
func problemOf(err error) error {
	var p *csv.ParseError
	if !errors.As(err, &p) {
		return err
	}
	switch {
	case errors.Is(err, csv.ErrFieldCount):
		return models.Invalid("csv", "line %d does not have the same number of cells as the header", p.Line)
	case errors.Is(err, csv.ErrQuote), errors.Is(err, csv.ErrBareQuote):
		return models.Invalid("csv", "line %d has a misplaced quotation mark; enclose the cell in quotation marks and double those inside it",
			p.StartLine)
	}
	return models.Invalid("csv", "line %d cannot be parsed", p.Line)
}

func truncated(name string) string {
	if r := []rune(name); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return name
}
