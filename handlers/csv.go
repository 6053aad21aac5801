package handlers

import (
	"encoding/csv"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// sheet writes a table as CSV that a spreadsheet can open without harm.
type sheet struct{ w *csv.Writer }

func newSheet(w io.Writer) sheet { return sheet{csv.NewWriter(w)} }

// row writes one line.
func (s sheet) row(cells ...string) error {
	line := make([]string, len(cells))
	for i, cell := range cells {
		line[i] = harmless(cell)
	}
	return s.w.Write(line)
}

// flush sends on what was written so far.
func (s sheet) flush() error {
	s.w.Flush()
	return s.w.Error()
}

// harmless puts an apostrophe before what a spreadsheet would take for a
// formula and carry out.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

// download answers with a table as a file, which fill writes while it is sent.
// When fill fails, the connection is cut: half a file must not pass for a
// whole one.
func (a rest) download(name string, fill func(huma.Context, sheet) error) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		hc.SetHeader("Content-Type", "text/csv; charset=utf-8")
		hc.SetHeader("Content-Disposition", `attachment; filename="`+name+`"`)
		s := newSheet(hc.BodyWriter())
		err := fill(hc, s)
		if err == nil {
			err = s.flush()
		}
		if err != nil {
			a.Logger.WarnContext(hc.Context(), "a table was cut off", "name", name, "err", err)
			panic(http.ErrAbortHandler)
		}
	}}
}

// describeDownload says in the document that an operation gives CSV.
func describeDownload(s section, path string) {
	ok := s.api.OpenAPI().Paths[path].Get.Responses["200"]
	ok.Content = map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}
}
