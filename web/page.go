package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

// Page is what the layout needs to know about a request.
type Page struct {
	Lang    string // "en" or "zh", see Negotiate
	User    *models.User
	Admin   bool
	Auditor bool
	Path    string // with query: marks the place in the navigation
	Now     time.Time
	Version string // of the program
	Mark    string // where the changes stood when the page was read
	Nav     NavCounts
	Flash   Flash
}

// NavCounts are the numbers beside the navigation's entries; 0 shows none.
type NavCounts struct {
	Workspaces    int // my live workspaces
	Waiting       int // requests waiting for the pool
	Requests      int // that wait for the reader's decision
	Notifications int // that the reader has not read
}

// Flash is the outcome of what the person did just before.
type Flash struct {
	Kind string // ok, warn or bad
	Text models.Text
}

type pageKey struct{}

// With puts the page's frame into the context that it is rendered with.
func With(ctx context.Context, p Page) context.Context {
	return context.WithValue(ctx, pageKey{}, p)
}

// From is the frame that With stored; without one, an English page for
// nobody.
func From(ctx context.Context) Page {
	p, ok := ctx.Value(pageKey{}).(Page)
	if !ok {
		p.Lang = models.English
	}
	return p
}

// htmxConfig keeps htmx inside the content security policy: it adds no
// styles. A response that is an error replaces nothing, and what the reader
// has opened stays open when a page is morphed.
const htmxConfig = `{"includeIndicatorCSS":false,"noSwap":[204,304,"4xx","5xx"],"morphIgnore":["data-htmx-powered","open"]}`

func htmlLang(ctx context.Context) string {
	if From(ctx).Lang == models.Chinese {
		return "zh-CN"
	}
	return "en"
}

// isCurrent tells whether the page lies at or below an entry of the navigation.
func isCurrent(ctx context.Context, href string) bool {
	path, _, _ := strings.Cut(From(ctx).Path, "?")
	if href == "/workspaces" && path == "/launch" {
		return true
	}
	return path == href || href != "/" && strings.HasPrefix(path, href+"/")
}

func userName(ctx context.Context) string {
	u := From(ctx).User
	if u.Name != "" {
		return u.Name
	}
	return u.Email
}

// frame is what a page tells the layout.
type frame struct {
	Title       string
	Topics      []string // refetch the page when one of these changes
	StillActive bool     // the page refetches a part of itself instead
	Every       string   // refetch the page so often, too, such as 10s
}

// topicAttributes tells live.js what to listen for.
func topicAttributes(ctx context.Context, topics []string) templ.Attributes {
	if len(topics) == 0 {
		return nil
	}
	return templ.Attributes{"data-topics": strings.Join(topics, " "), "data-since": From(ctx).Mark}
}

// liveAttributes make a part refetch its page when a topic changes.
func liveAttributes(ctx context.Context, f frame) templ.Attributes {
	if len(f.Topics) == 0 || f.StillActive {
		return nil
	}
	trigger := "weir:change from:body"
	if f.Every != "" {
		trigger += ", every " + f.Every
	}
	return templ.Attributes{
		"hx-get":    From(ctx).Path,
		"hx-select": "#main",
		// These numbers stand beside the content.
		"hx-select-oob": "#nav-workspaces:outerHTML,#nav-requests:outerHTML,#bell:outerHTML",
		"hx-trigger":    trigger,
		"hx-swap":       "outerMorph",
		"hx-sync":       "this:queue last",
	}
}

// userTopic is what concerns the reader: workspaces, memberships.
func userTopic(ctx context.Context) string { return "user:" + id(From(ctx).User.ID) }

// followedTopics are the topics that a page follows: its own, and for somebody who
// is signed in what concerns them.
func followedTopics(ctx context.Context, topics []string) []string {
	if From(ctx).User == nil || From(ctx).Mark == "" || slices.Contains(topics, userTopic(ctx)) {
		return topics
	}
	return append(slices.Clone(topics), userTopic(ctx))
}
