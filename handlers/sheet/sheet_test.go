package sheet

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"weir/models"
)

var testColumns = []string{"email", "name", "role"}

func readTest(text string) ([]models.Record, error) {
	return Read(text, testColumns, []string{"email", "role"})
}

func TestReadSheet(t *testing.T) {
	for text, want := range map[string]string{
		"email,role\na@b,x\n":                        "2 a@b  x",
		"\ufeffemail,role\r\na@b,x\r\n\r\nc@d,y":     "2 a@b  x|4 c@d  y",
		"Role , EMAIL\nx,a@b":                        "2 a@b  x",
		"email,role,name\n\"a@b\",\"x, y\",\"\"\"\"": "2 a@b \" x, y",
		"email,role,name\na@b,x,'=1+1":               "2 a@b =1+1 x",
		"email,role,name\na@b,x,''=1":                "2 a@b '=1 x",
		"email,role,name\na@b,x,'n' Roll":            "2 a@b 'n' Roll x",
		"email,role,name\n a@b , x ,  ":              "2 a@b  x",
		"\nemail;role;name\na@b;x;\"Bee; C, D\"":     "3 a@b Bee; C, D x",
	} {
		records, err := readTest(text)
		var got []string
		for _, r := range records {
			got = append(got, fmt.Sprint(r.Line, " ", r.Cells["email"], " ", r.Cells["name"], " ", r.Cells["role"]))
		}
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestWrongSheets(t *testing.T) {
	many := "email,role\n" + strings.Repeat("a@b,x\n", maxRows)
	if _, err := readTest(many); err != nil {
		t.Errorf("%d rows: %v", maxRows, err)
	}
	for text, says := range map[string]string{
		"":                            "empty",
		"\ufeff \n":                   "empty",
		"email,role":                  "at least one row",
		"email,role\n\n":              "at least one row",
		"email\na@b":                  "column role",
		"email;role,name\na@b;x":      "separated by commas",
		"email,role,boss\na@b,x,y":    "column boss",
		"email,role,email\na@b,x,y":   "twice",
		"email,role\na@b":             "line 2 does not have the same number of cells",
		"email,role\na@b,x,y":         "line 2 does not have the same number of cells",
		"email,role\na@b,x\n\"a@b,x":  "line 3 has a misplaced quotation mark",
		"email,role\na@b,x\"y":        "line 2 has a misplaced quotation mark",
		"email,role\na@b,x\nc@d,\xff": "line 3 is not valid UTF-8",
		"email,role\na@b,\x00":        "line 2 is not valid UTF-8",
		"e\x00m\x00a\x00i\x00l\x00":   "line 1 is not valid UTF-8", // UTF-16
		"email,role\na@b," + strings.Repeat("x", 1001): "line 2: role",
		many + "a@b,x\n":                "line 2002 exceeds this",
		strings.Repeat("x", MaxBytes+1): "1 MiB",
	} {
		_, err := readTest(text)
		if models.KindOf(err) != models.KindInvalid || err == nil || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "csv: ") {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// What is downloaded says the same when it is read again, and no cell of it
// is a formula for a spreadsheet.
func TestDownloadsAreReadAgain(t *testing.T) {
	word := rapid.Map(rapid.StringOfN(rapid.RuneFrom([]rune("=+-@＝'\",; ab漢\ufffd|\t\r\n")), 0, 12, -1), strings.TrimSpace)
	rapid.Check(t, func(t *rapid.T) {
		var file strings.Builder
		s := NewWriter(&file)
		table := rapid.SliceOfN(rapid.SliceOfN(word, 3, 3), 1, 5).Draw(t, "table")
		if err := s.Row(testColumns...); err != nil {
			t.Fatal(err)
		}
		for _, row := range table {
			row[0] = "a@b" // an empty line is no row
			if err := s.Row(row...); err != nil {
				t.Fatal(err)
			}
			for _, cell := range row {
				h := escapeFormula(cell)
				if h != "" && strings.ContainsRune("\t\r\n", rune(h[0])) {
					t.Fatalf("%q begins with a separator", h)
				}
				for _, part := range strings.FieldsFunc(h, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
					if r := []rune(strings.TrimLeft(part, `" `)); len(r) > 0 && strings.ContainsRune("=+-@＝", r[0]) {
						t.Fatalf("%q is a formula in %q", part, h)
					}
				}
			}
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		records, err := readTest(file.String())
		if err != nil || len(records) != len(table) {
			t.Fatalf("%d of %d rows, %v", len(records), len(table), err)
		}
		for i, row := range table {
			for j, cell := range row {
				// CSV knows one kind of line break.
				if want := strings.ReplaceAll(cell, "\r\n", "\n"); records[i].Cells[testColumns[j]] != want {
					t.Fatalf("%q became %q", cell, records[i].Cells[testColumns[j]])
				}
			}
		}
	})
}

func FuzzReadSheet(f *testing.F) {
	f.Add("email,role\na@b,x\n")
	f.Add("\ufeffemail,role,name\r\n\"a\"\"b\",,'=x")
	f.Fuzz(func(t *testing.T, text string) {
		records, err := readTest(text)
		if err != nil {
			if models.KindOf(err) != models.KindInvalid {
				t.Errorf("%v", err)
			}
			return
		}
		if len(records) == 0 || len(records) > maxRows {
			t.Errorf("%d rows", len(records))
		}
		for _, r := range records {
			for name, cell := range r.Cells {
				if !utf8.ValidString(cell) || unescapeFormula(escapeFormula(cell)) != cell {
					t.Errorf("%s: %q", name, cell)
				}
			}
		}
	})
}

func TestHarmlessCells(t *testing.T) {
	var out bytes.Buffer
	s := NewWriter(&out)
	if err := s.Row("=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx", "a=1", "", "say \"no\", twice", "'"); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&out).Read()
	want := []string{"'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\tx", "'\rx", "a=1", "", "say \"no\", twice", "'"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v", got, err)
	}
}
