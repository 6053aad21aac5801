package web

import "weir/models"

// FilePreviewView is what a file looks like. The page has neither scripts nor requests.
type FilePreviewView struct {
	Name  string
	Text  string
	Cells []NotebookCell // of a notebook
	Note  models.Text
}

// NotebookCell is a cell of a notebook.
type NotebookCell struct {
	Code    bool
	Source  string
	HTML    string // of Markdown, without HTML of the author
	Count   *int64 // how many cells had run
	Outputs []NotebookOutput
}

// NotebookOutput is what a cell has printed or drawn.
type NotebookOutput struct {
	Text   string
	Image  string // a data URL
	Failed bool
}

func executionCount(n *int64) string {
	if n == nil {
		return " "
	}
	return number(*n)
}
