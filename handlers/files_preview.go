package handlers

import (
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/handlers/notebook"
	"weir/models"
	"weir/storage/beneath"
	"weir/storage/files"
	"weir/web"
)

const (
	maxPreviewText     = 256 << 10 // bytes of a longer text that are shown
	maxPreviewNotebook = 8 << 20
	maxPreviewImage    = 32 << 20
)

// previewPolicy puts a preview into an origin of its own, without scripts, cookies and
// requests: files are hostile.
const previewPolicy = "sandbox; default-src 'none'; img-src data:; style-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'self'"

// imagePolicy is previewPolicy for an image that is opened by itself.
const imagePolicy = "sandbox; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"

// imageTypes are the images that browsers show.
var imageTypes = map[string]string{".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif",
	".webp": "image/webp", ".bmp": "image/bmp", ".svg": "image/svg+xml"}

// textTypes are the extensions of files that are shown as text.
const textTypes = " .bash .bat .bib .c .cc .cfg .cmake .conf .cpp .css .csv .cu .cuh .diff .env .go .h .hpp .htm .html .ini .ipynb .java .js .json .jsonl .jl .lock .log .lua .m .markdown .md .patch .pl .properties .proto .ps1 .py .pyi .r .rb .rs .rst .scala .sh .sql .srt .tex .toml .ts .tsv .txt .vtt .xml .yaml .yml .xhtml "

// filePreviewOf is how a file is shown, or why it is not.
func filePreviewOf(e files.Entry) (kind string, why models.Text) {
	ext := strings.ToLower(filepath.Ext(e.Name))
	switch {
	case e.Kind != beneath.Regular:
		return "", models.Say("A link or a special file has no preview.")
	case !e.Download:
		return "", models.Say("There is no preview, because the rules of the project do not allow you to download this file.")
	case imageTypes[ext] != "" && e.Size <= maxPreviewImage:
		return "image", models.Text{}
	case ext == ".ipynb" && e.Size <= maxPreviewNotebook:
		return "notebook", models.Text{}
	case ext == "" || strings.Contains(textTypes, " "+ext+" "):
		return "text", models.Text{}
	default:
		return "", models.Say("There is no preview of files of this type or size.")
	}
}

// previewFile sends what a file looks like. Its twin is the content.
func (a *App) previewFile(c echo.Context) error {
	ctx := c.Request().Context()
	content, err := a.Files.Open(ctx, actorOf(ctx), number(c, "id"), pathOf(c), true)
	if err != nil {
		return err
	}
	defer content.Close()
	kind, why := filePreviewOf(content.Entry)
	if kind == "image" {
		a.sendImage(c, content)
		return nil
	}
	page := web.FilePreviewPage(web.FilePreviewView{Name: content.Entry.Name, Note: why})
	switch kind {
	case "notebook":
		page, err = previewNotebook(content)
	case "text":
		page, err = previewText(content)
	}
	if err != nil {
		return err
	}
	return a.sendPreview(c, page)
}

func (a *App) sendImage(c echo.Context, content *files.Content) {
	rest{a}.send(c, content.Entry, content.Transfer, func(w http.ResponseWriter, r *http.Request) error {
		h := w.Header()
		h.Set("Content-Security-Policy", imagePolicy)
		h.Set("Content-Disposition", "inline")
		h.Set("Content-Type", imageTypes[strings.ToLower(filepath.Ext(content.Entry.Name))])
		http.ServeContent(w, r, "", content.Entry.Modified, content.File)
		return nil
	})
}

func (a *App) sendPreview(c echo.Context, page templ.Component) error {
	var body bytes.Buffer
	if err := page.Render(a.localized(c), &body); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set("Content-Security-Policy", previewPolicy)
	h.Set("X-Frame-Options", "SAMEORIGIN")
	return c.HTMLBlob(http.StatusOK, body.Bytes())
}

func previewText(content *files.Content) (templ.Component, error) {
	text, err := io.ReadAll(io.LimitReader(content.File, maxPreviewText))
	v := web.FilePreviewView{Name: content.Entry.Name, Text: strings.ToValidUTF8(string(text), string(utf8.RuneError))}
	switch {
	case bytes.IndexByte(text, 0) >= 0:
		v.Text, v.Note = "", models.Say("This file is not text.")
	case content.Entry.Size > maxPreviewText:
		v.Note = models.Say("Only the beginning of the file is shown.")
	}
	return web.FilePreviewPage(v), err
}

// previewNotebook renders a notebook, or shows what is no notebook as text.
func previewNotebook(content *files.Content) (templ.Component, error) {
	raw, err := io.ReadAll(io.LimitReader(content.File, maxPreviewNotebook))
	if err != nil {
		return nil, err
	}
	cells, err := notebook.Parse(raw)
	if err != nil {
		if _, err := content.File.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		return previewText(content)
	}
	return web.FilePreviewPage(web.FilePreviewView{Name: content.Entry.Name, Cells: cells}), nil
}
