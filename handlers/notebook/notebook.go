package notebook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"

	"weir/web"
)

// maxCells bounds what is shown of a notebook.
const maxCells = 2000

// markdown is GitHub's. HTML in it is left out, and so are addresses with scripts.
var markdown = goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough))

// lines is a text that is a string or a list of lines.
type lines string

func (l *lines) UnmarshalJSON(b []byte) error {
	var list []string
	if json.Unmarshal(b, &list) == nil {
		*l = lines(strings.Join(list, ""))
		return nil
	}
	return json.Unmarshal(b, (*string)(l))
}

// cell is a cell of nbformat 4.
type cell struct {
	Type    string   `json:"cell_type"`
	Source  lines    `json:"source"`
	Count   *int64   `json:"execution_count"`
	Outputs []output `json:"outputs"`
}

type output struct {
	Type      string                     `json:"output_type"`
	Text      lines                      `json:"text"`
	Data      map[string]json.RawMessage `json:"data"`
	Traceback []string                   `json:"traceback"`
	Name      string                     `json:"ename"`
	Value     string                     `json:"evalue"`
}

// Parse reads a notebook of nbformat 4. It returns an error for anything else.
func Parse(raw []byte) ([]web.NotebookCell, error) {
	var document struct {
		Format int     `json:"nbformat"`
		Cells  []*cell `json:"cells"`
	}
	if err := json.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if document.Format != 4 {
		return nil, errors.New("notebook: not nbformat 4")
	}
	var list []web.NotebookCell
	for _, c := range document.Cells[:min(len(document.Cells), maxCells)] {
		if c == nil {
			continue
		}
		shown, err := c.show()
		if err != nil {
			return nil, err
		}
		list = append(list, shown)
	}
	return list, nil
}

func (c *cell) show() (web.NotebookCell, error) {
	shown := web.NotebookCell{Code: c.Type == "code", Source: string(c.Source), Count: c.Count}
	if c.Type == "markdown" {
		var b bytes.Buffer
		err := markdown.Convert([]byte(c.Source), &b)
		shown.HTML = b.String()
		return shown, err
	}
	for _, o := range c.Outputs {
		shown.Outputs = append(shown.Outputs, o.show())
	}
	return shown, nil
}

// escapes are the terminal's control sequences in tracebacks.
var escapes = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

func (o output) show() web.NotebookOutput {
	switch o.Type {
	case "stream":
		return web.NotebookOutput{Text: escapes.ReplaceAllString(string(o.Text), "")}
	case "error":
		text := strings.Join(o.Traceback, "\n")
		if text == "" {
			text = o.Name + ": " + o.Value
		}
		return web.NotebookOutput{Text: escapes.ReplaceAllString(text, ""), Failed: true}
	}
	for _, mime := range []string{"image/png", "image/jpeg", "image/gif"} {
		if data, ok := o.image(mime); ok {
			return web.NotebookOutput{Image: "data:" + mime + ";base64," + data}
		}
	}
	return web.NotebookOutput{Text: o.text("text/plain")}
}

// image is an output as base64.
func (o output) image(mime string) (string, bool) {
	text := strings.Join(strings.Fields(o.text(mime)), "")
	raw, err := base64.StdEncoding.DecodeString(text)
	return text, err == nil && len(raw) > 0
}

func (o output) text(mime string) string {
	var text lines
	if raw, ok := o.Data[mime]; !ok || json.Unmarshal(raw, &text) != nil {
		return ""
	}
	return string(text)
}
