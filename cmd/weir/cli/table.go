package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"weir/models"
)

// table writes text in columns. flush returns the first error.
type table struct {
	out   *tabwriter.Writer
	wrote bool
}

func newTable(out io.Writer) *table { return &table{out: tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)} }

func (t *table) flush() error { return t.out.Flush() }

// row writes one line. An empty cell is a dash, so that programs can separate
// the columns.
func (t *table) row(cells ...any) {
	words := make([]string, len(cells))
	for i, cell := range cells {
		words[i] = cmp.Or(clean(fmt.Sprint(cell)), "-")
	}
	fmt.Fprintln(t.out, strings.Join(words, "\t"))
	t.wrote = true
}

// field writes a name and a value, unless the value is empty.
func (t *table) field(name string, value any) {
	if text := fmt.Sprint(value); text != "" {
		t.row(name, text)
	}
}

// section begins another table with its own column widths and head.
func (t *table) section(head ...any) {
	if t.wrote {
		fmt.Fprintln(t.out)
		_ = t.out.Flush() // the writer keeps its first error
	}
	t.row(head...)
}

// line writes one sentence.
func (t *table) line(format string, args ...any) {
	fmt.Fprintln(t.out, clean(fmt.Sprintf(format, args...)))
	t.wrote = true
}

// moment formats a time in the local time zone.
func moment(at time.Time) string { return at.Local().Format(time.DateTime) }

// momentOr is moment for a time that may be unknown.
func momentOr(at *time.Time, otherwise string) string {
	if at == nil {
		return otherwise
	}
	return moment(*at)
}

// count formats a number with its noun: “1 GPU”, “3 GPUs”.
func count[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func mib(n int64) string { return models.FormatMiB(n) }

// minutes formats a number of minutes as a duration: “30m”, “1h30m”.
func minutes(n int64) string {
	text := strings.TrimSuffix((time.Duration(n) * time.Minute).String(), "0s")
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return cmp.Or(text, "0m")
}

// clean replaces control characters except those in stays, so that names from
// the server cannot control the terminal.
func clean(text string, stays ...rune) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && !strings.ContainsRune(string(stays), r) || r == unicode.ReplacementChar {
			return ' '
		}
		return r
	}, text)
}
