package docs

import (
	"cmp"
	"embed"
	"io/fs"
	"path"
	"strings"
	"sync"
)

//go:embed *.md *.svg *.png *.json concepts how-to reference tutorial
var files embed.FS

// Page is a page as HTML.
type Page struct {
	Name     string // path without .md, such as how-to/tls; empty: the list of all pages
	Lang     string // en or zh
	Title    string
	HTML     string // safe
	sections []section
}

// Address is the path of the page in the portal.
func (p Page) Address() string { return address(p.Name) }

// Group is a heading of the list of pages, with its pages.
type Group struct {
	Title string
	Pages []Page
}

const (
	list    = "README"
	english = "en"
	chinese = "zh"
)

func address(name string) string { return path.Join("/docs", name) }

// Find returns a page in a language, or in English if there is no translation.
func Find(name, lang string) (Page, bool) {
	if name == list {
		return Page{}, false // its name is empty
	}
	translated, ok := pages()[key{name, lang}]
	if !ok {
		translated, ok = pages()[key{name, english}]
	}
	return translated, ok
}

// File returns a file as it is: the Markdown of a page, a picture, the OpenAPI document.
func File(name string) ([]byte, error) { return fs.ReadFile(files, name) }

type key struct{ name, lang string }

// pages renders all pages.
var pages = sync.OnceValue(func() map[key]Page {
	all := map[key]Page{}
	err := fs.WalkDir(files, ".", func(file string, _ fs.DirEntry, err error) error {
		name, markdown := strings.CutSuffix(file, ".md")
		if err != nil || !markdown {
			return err
		}
		source, err := fs.ReadFile(files, file)
		if err != nil {
			return err
		}
		p, err := renderPage(file, source)
		p.Lang = english
		if base, ok := strings.CutSuffix(name, "."+chinese); ok {
			name, p.Lang = base, chinese
		}
		if name != list {
			p.Name = name
		}
		all[key{p.Name, p.Lang}] = p
		return err
	})
	if err != nil {
		panic("docs: " + err.Error())
	}
	return all
})

// Contents is the list of pages, in the order and with the headings of README.md.
func Contents(lang string) []Group {
	var groups []Group
	for _, g := range contents() {
		translated := Group{Title: g.Title}
		for _, p := range g.Pages {
			if t, ok := Find(p.Name, lang); ok {
				p.Title, p.Lang = cmp.Or(t.Title, p.Title), t.Lang
			}
			translated.Pages = append(translated.Pages, p)
		}
		groups = append(groups, translated)
	}
	return groups
}

var contents = sync.OnceValue(func() (groups []Group) {
	source, err := File(list + ".md")
	if err != nil {
		panic("docs: " + err.Error())
	}
	for line := range strings.Lines(string(source)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			groups = append(groups, Group{Title: strings.TrimSpace(title)})
		}
		title, link, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "- ["), "](")
		if ok && strings.HasPrefix(line, "- [") {
			g := &groups[len(groups)-1]
			g.Pages = append(g.Pages, Page{Name: strings.TrimSuffix(strings.TrimSuffix(link, ")"), ".md"), Title: title})
		}
	}
	return groups
})
