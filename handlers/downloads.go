package handlers

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"weir/models"
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
// formula and carry out, and before such apostrophes: meant takes it off.
func harmless(cell string) string {
	if formula(strings.TrimLeft(cell, "'")) {
		return "'" + cell
	}
	return cell
}

// meant is the cell that harmless was given.
func meant(cell string) string {
	if rest, marked := strings.CutPrefix(cell, "'"); marked && formula(strings.TrimLeft(rest, "'")) {
		return rest
	}
	return cell
}

func formula(cell string) bool {
	return cell != "" && strings.ContainsRune("=+-@\t\r\n", rune(cell[0]))
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

// downloaded answers with a list as a file. It reads a page at a time, each
// with the rights that the actor has then; the first comes before anything is
// sent, so that a refusal is an answer.
func downloaded[T any](a rest, ctx context.Context, name string, columns []string, cells func(T) []string, id func(T) int64,
	fetch func(context.Context, models.Page) ([]T, error)) (*huma.StreamResponse, error) {
	page := models.Page{Limit: models.PageSize}
	rows, err := fetch(ctx, page)
	if err != nil {
		return nil, err
	}
	return a.download(name, func(hc huma.Context, s sheet) error {
		if err := s.row(columns...); err != nil {
			return err
		}
		for {
			for _, r := range rows {
				if err := s.row(cells(r)...); err != nil {
					return err
				}
			}
			if len(rows) < page.Limit {
				return nil
			}
			actor, err := a.Accounts.Still(hc.Context(), actorOf(hc.Context()))
			if err != nil {
				return err
			}
			page.After = id(rows[len(rows)-1])
			if rows, err = fetch(withActor(hc.Context(), actor), page); err != nil {
				return err
			}
		}
	}), nil
}

// describeDownload says in the document that an operation gives CSV.
func describeDownload(s section, path string) {
	ok := s.api.OpenAPI().Paths[path].Get.Responses["200"]
	ok.Content = map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}}
}
