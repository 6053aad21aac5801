package handlers

import (
	"context"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"

	"weir/handlers/sheet"
	"weir/models"
	"weir/web"
)

func (a *App) importsRoutes(p *echo.Group) {
	p.GET("/projects/:id/members/import", a.importPage(a.membersImport))
	p.POST("/projects/:id/members/import", a.importTablePage(a.membersImport))
	p.GET("/people/import", a.importPage(a.peopleImport))
	p.POST("/people/import", a.importTablePage(a.peopleImport))
}

// findImport prepares the import for a project, or with id 0 for the platform, and
// checks the actor's permission.
type findImport func(ctx context.Context, id int64) (tableImport, error)

func (a *App) importPage(find findImport) echo.HandlerFunc {
	return func(c echo.Context) error {
		t, err := find(c.Request().Context(), number(c, "id"))
		if err != nil {
			return err
		}
		t.view.Form = formOf(0)
		return a.render(c, http.StatusOK, web.ImportPage(t.view))
	}
}

// importTablePage previews an import and, once that is confirmed, applies it. The form
// contains the table; the server stores nothing in between.
func (a *App) importTablePage(find findImport) echo.HandlerFunc {
	return func(c echo.Context) error {
		ctx := c.Request().Context()
		t, err := find(ctx, number(c, "id"))
		if err != nil {
			return err
		}
		f, err := readForm(c)
		if err != nil {
			return err
		}
		text, err := f.uploadedText(c, "csv", sheet.MaxBytes, "1 MiB")
		var report models.ImportReport
		if err == nil {
			report, err = t.take(ctx, text, !f.bool("confirm"), f.text("plan"))
		}
		t.view.Form, t.view.Rows = web.Form{Values: map[string]string{"csv": text, "plan": report.Plan}}, report.Rows
		if err != nil {
			t.view.Form = t.view.Form.Refuse(err)
			return a.refused(c, f, err, showing(web.ImportPage(t.view)))
		}
		if !report.Done {
			return a.render(c, http.StatusOK, web.ImportPage(t.view))
		}
		return a.redirectWithFlash(c, t.view.Back, models.Say("Import complete: %d added, %d changed, %d unchanged.",
			report.Count(models.RowAdded), report.Count(models.RowChanged), report.Count(models.RowUnchanged)))
	}
}

// uploadedText is the uploaded file, or else the text of a field. size is the limit in words.
func (f *form) uploadedText(c echo.Context, field string, limit int64, size string) (string, error) {
	header, err := c.FormFile("file")
	if err != nil || header.Size == 0 {
		return f.text(field), nil
	}
	if header.Size > limit {
		return "", models.Invalid(field, "must be at most %s", size)
	}
	file, err := header.Open()
	if err != nil {
		return "", err
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	return string(b), err
}
