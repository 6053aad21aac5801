package sheet

import (
	"encoding/csv"
	"io"
	"strings"
	"unicode/utf8"
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

// separators are what some spreadsheets split a line at, also within a cell.
const separators = ";\t\r\n"

// escapeFormula prefixes formulas, which a spreadsheet would execute, and such apostrophes with an
// apostrophe, at the beginning of a cell and after what could separate two; unescapeFormula
// removes them.
func escapeFormula(cell string) string {
	return atParts(cell, func(rest string, first bool) (added string, skipped int) {
		if formula(rest, first) {
			return "'", 0
		}
		return "", 0
	})
}

// unescapeFormula undoes escapeFormula.
func unescapeFormula(cell string) string {
	return atParts(cell, func(rest string, first bool) (added string, skipped int) {
		if marked, ok := strings.CutPrefix(rest, "'"); ok && formula(marked, first) {
			return "", 1
		}
		return "", 0
	})
}

// atParts replaces bytes at the beginning of each part of a cell, as edit says of what follows.
func atParts(cell string, edit func(rest string, first bool) (added string, skipped int)) string {
	var b strings.Builder
	for i, begins := 0, true; i < len(cell); i++ {
		if begins {
			added, skipped := edit(cell[i:], i == 0)
			b.WriteString(added)
			i += skipped
		}
		begins = strings.IndexByte(separators, cell[i]) >= 0
		b.WriteByte(cell[i])
	}
	return b.String()
}

// formula reports whether a spreadsheet could take the part of a cell for a formula: also one of
// full-width signs, and behind blanks and quotation marks.
func formula(part string, first bool) bool {
	part = strings.TrimLeft(part, `'" `)
	r, _ := utf8.DecodeRuneInString(part)
	return part != "" && (strings.ContainsRune("=+-@＝＋－＠", r) || first && strings.ContainsRune("\t\r\n", r))
}
