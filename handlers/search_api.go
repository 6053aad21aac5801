package handlers

import (
	"context"
	"net/http"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/pool/projects"
	"weir/workspaces"
)

func (a rest) searchOperations(s section) {
	register(a, s, route{http.MethodGet, "/search", 200, "search", models.Say("Search projects, workspaces, users and providers")}, a.search)
}

// searchLimit is the number of results of each kind.
const searchLimit = 5

// SearchQuery is the text to search for.
type SearchQuery struct {
	Text string `query:"q" required:"true" minLength:"1" maxLength:"100" doc:"part of a name; of workspaces, those that have not ended are searched"`
}

// SearchResult is something that was found.
type SearchResult struct {
	Kind   string `json:"kind" enum:"project,workspace,user,provider"`
	ID     int64  `json:"id"`
	Name   string `json:"name"`
	Detail string `json:"detail,omitempty" doc:"of a workspace, its project and owner; of a user, the email address"`
	State  string `json:"state,omitempty" doc:"of a workspace or a provider"`
}

// SearchResults are the first results of each kind.
type SearchResults struct {
	Items []SearchResult `json:"items" doc:"at most five of each kind"`
	More  []string       `json:"more,omitempty" doc:"kinds of which there are more"`
}

func (a rest) search(ctx context.Context, in *SearchQuery) (*Response[SearchResults], error) {
	results, err := a.searchByName(ctx, in.Text)
	return &Response[SearchResults]{results}, err
}

// searchByName searches what the actor may see.
func (a *App) searchByName(ctx context.Context, text string) (results SearchResults, err error) {
	var p models.Problems
	if text = models.CheckText("q", text, 100, &p); text == "" {
		p.Add("q", "must not be empty")
	}
	if err := p.Err(); err != nil {
		return results, err
	}
	results.Items = []SearchResult{}
	err = a.Store.InSnapshot(ctx, func(ctx context.Context) error {
		for _, search := range []func(context.Context, string, store.Page) ([]SearchResult, error){
			a.findProjects, a.findWorkspaces, a.findUsers, a.findProviders,
		} {
			list, err := search(ctx, text, store.Page{Limit: searchLimit + 1})
			if err != nil {
				return err
			}
			if len(list) > searchLimit {
				list = list[:searchLimit]
				results.More = append(results.More, list[0].Kind)
			}
			results.Items = append(results.Items, list...)
		}
		return nil
	})
	return results, err
}

func (a *App) findProjects(ctx context.Context, text string, page store.Page) ([]SearchResult, error) {
	list, err := a.Projects.ListProjects(ctx, actorOf(ctx), projects.ProjectQuery{Search: text}, page)
	return models.Map(list, func(p projects.ProjectView) SearchResult {
		return SearchResult{Kind: "project", ID: p.ID, Name: p.Name}
	}), err
}

// findWorkspaces finds those that have not ended.
func (a *App) findWorkspaces(ctx context.Context, text string, page store.Page) ([]SearchResult, error) {
	f := activeWorkspaces(0, 0)
	f.Search = text
	list, err := a.Workspaces.List(ctx, actorOf(ctx), f, page)
	return models.Map(list, func(w workspaces.Summary) SearchResult {
		return SearchResult{Kind: "workspace", ID: w.ID, Name: w.Name, Detail: w.ProjectName + " · " + w.UserName, State: string(w.State)}
	}), err
}

// findUsers finds nobody for those who may not list the accounts.
func (a *App) findUsers(ctx context.Context, text string, page store.Page) ([]SearchResult, error) {
	if !a.Accounts.PlatformPermissions(actorOf(ctx)).ReadAccounts {
		return nil, nil
	}
	list, err := a.Accounts.Users(ctx, actorOf(ctx), text, page)
	return models.Map(list, func(u models.User) SearchResult {
		return SearchResult{Kind: "user", ID: u.ID, Name: u.Name, Detail: u.Email}
	}), err
}

func (a *App) findProviders(ctx context.Context, text string, page store.Page) (list []SearchResult, err error) {
	view, err := a.Pool.View(ctx, actorOf(ctx))
	for _, p := range view.Providers {
		if len(list) < page.Limit && strings.Contains(strings.ToLower(p.Name), strings.ToLower(text)) {
			list = append(list, SearchResult{Kind: "provider", ID: p.ID, Name: p.Name, State: p.State})
		}
	}
	return list, err
}
