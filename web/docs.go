package web

import "github.com/a-h/templ"

// DocsView is a page of the documentation beside the list of all pages; with a Query,
// what the search found instead.
type DocsView struct {
	Name, Title string
	Lang        string // of the page
	HTML        string // safe
	Groups      []DocsGroup
	Query       string
	Hits        []DocsHit
}

// DocsGroup is a heading of the list, with its pages.
type DocsGroup struct {
	Title string
	Pages []DocsLink
}

// DocsLink is a page in the list.
type DocsLink struct{ Title, Lang, Address string }

// DocsHit is a section that the search found.
type DocsHit struct{ Page, Section, Lang, Address, Excerpt string }

func docsAddress(name string) string {
	if name == "" {
		return "/docs"
	}
	return "/docs/" + name
}

func (v DocsView) markdown() string {
	if v.Name == "" {
		return "/docs/README.md"
	}
	if v.Lang == "zh" {
		return docsAddress(v.Name) + ".zh.md"
	}
	return docsAddress(v.Name) + ".md"
}

// langOf is the attribute of a text in a language of the catalog.
func langOf(lang string) string {
	if lang == "zh" {
		return "zh-CN"
	}
	return lang
}

func currentPage(current bool) templ.Attributes {
	if !current {
		return nil
	}
	return templ.Attributes{"aria-current": "page"}
}
