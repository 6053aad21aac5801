package sheet

import (
	"encoding/csv"
	"io"
	"strings"
)

// Writer writes a table as CSV that a spreadsheet can open without harm.
type Writer struct{ w *csv.Writer }

// NewWriter writes to w.
func NewWriter(w io.Writer) Writer { return Writer{csv.NewWriter(w)} }

// Row writes one line.
func (s Writer) Row(cells ...string) error {
	line := make([]string, len(cells))
	for i, cell := range cells {
		line[i] = escapeFormula(cell)
	}
	return s.w.Write(line)
}

// Flush writes buffered rows.
func (s Writer) Flush() error {
	s.w.Flush()
	return s.w.Error()
}

// escapeFormula prefixes formulas, which a spreadsheet would execute, and such apostrophes
// with an apostrophe; unescapeFormula removes it.
func escapeFormula(cell string) string {
	if formula(strings.TrimLeft(cell, "'")) {
		return "'" + cell
	}
	return cell
}

// unescapeFormula undoes harmless.
func unescapeFormula(cell string) string {
	if rest, marked := strings.CutPrefix(cell, "'"); marked && formula(strings.TrimLeft(rest, "'")) {
		return rest
	}
	return cell
}

func formula(cell string) bool {
	return cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0]))
}
