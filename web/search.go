package web

import (
	"context"
	"net/url"
	"slices"
	"strings"

	"weir/models"
)

// SearchView is what was found for a text; without a text, only the form.
type SearchView struct {
	Text    string
	Form    Form // q
	Results []SearchResult
	More    []string // kinds of which there are more
}

// SearchResult is something that was found.
type SearchResult struct {
	Kind   string // project, workspace, user or provider
	ID     int64
	Name   string
	Detail string
	State  string
}

var searchField = field{Label: models.Say("Name"), Type: "search"}

// searchKind is a kind of results: its title, and the address of a result and of all of them.
type searchKind struct {
	kind  string
	title models.Text
	path  string // of a result, without its ID
	list  string // of all, for the text {q}
}

var searchKinds = []searchKind{
	{"project", models.Say("Projects"), "/projects/", "/projects?q={q}"},
	{"workspace", models.Say("Workspaces"), "/workspaces/", "/workspaces?owner=all&q={q}"},
	{"user", models.Say("People"), "/people/", "/people?q={q}"},
	{"provider", models.Say("Machines"), "/pool/providers/", "/pool"},
}

// of are the results of a kind.
func (v SearchView) of(k searchKind) (list []SearchResult) {
	for _, r := range v.Results {
		if r.Kind == k.kind {
			list = append(list, r)
		}
	}
	return list
}

// all is the address of all results of a kind; empty if they are shown.
func (v SearchView) all(k searchKind) string {
	if !slices.Contains(v.More, k.kind) {
		return ""
	}
	return strings.ReplaceAll(k.list, "{q}", url.QueryEscape(v.Text))
}

func (v SearchView) nothing(ctx context.Context) string {
	return T(ctx, "Nothing matches “%s”.", v.Text)
}
