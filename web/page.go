package web

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

// Page is the data of the layout.
type Page struct {
	Lang        string // "en" or "zh", see Negotiate
	User        *models.User
	Can         models.PlatformPermissions
	Path        string // with query: marks the place in the navigation
	Now         time.Time
	Version     string // of the program
	EventCursor string // where the changes stood when the page was read
	Nav         NavCounts
	Flash       Flash
	DiskFull    models.Text // why new work is refused; empty: it is not
}

// NavCounts are the numbers beside the navigation's entries; 0 shows none.
type NavCounts struct {
	Workspaces    int // my live workspaces
	Requests      int // that wait for the reader's decision
	Notifications int // that the reader has not read
}

// Flash is the result of the previous action.
type Flash struct {
	Kind string // ok, warn or bad
	Text models.Text
}

type pageKey struct{}

// With puts the page's frame into the context that it is rendered with.
func With(ctx context.Context, p Page) context.Context {
	return context.WithValue(ctx, pageKey{}, p)
}

// From is the Page that With stored; by default an English page without a user.
func From(ctx context.Context) Page {
	p, ok := ctx.Value(pageKey{}).(Page)
	if !ok {
		p.Lang = models.English
	}
	return p
}

// htmxConfig makes htmx comply with the content security policy: it adds no styles.
// Error responses replace nothing, and opened details remain open when a page is
// morphed.
const htmxConfig = `{"includeIndicatorCSS":false,"noSwap":[204,304,"4xx","5xx"],"morphIgnore":["data-htmx-powered","open"]}`

func htmlLang(ctx context.Context) string {
	if From(ctx).Lang == models.Chinese {
		return "zh-CN"
	}
	return "en"
}

// timeZone is that of the reader's account; empty: that of the browser.
func timeZone(ctx context.Context) string {
	if u := From(ctx).User; u != nil {
		return u.TimeZone
	}
	return ""
}

// isCurrent reports whether the page is at or below an entry of the navigation.
func isCurrent(ctx context.Context, href string) bool {
	path, _, _ := strings.Cut(From(ctx).Path, "?")
	if href == "/workspaces" && path == "/launch" {
		return true
	}
	if path == bellPath { // a part of any page
		return false
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

// frame is what a page passes to the layout.
type frame struct {
	Title          string
	Topics         []string // refetch the page when one of these changes
	PartialRefresh bool     // the page refetches a part of itself instead
	Script         string   // module of this page
	Every          int      // seconds after which to refetch the page without a change, too; 0: never
}

// topicAttributes are the topics that live.js follows.
func topicAttributes(ctx context.Context, f frame) templ.Attributes {
	topics := followedTopics(ctx, f.Topics)
	if len(topics) == 0 {
		return nil
	}
	return templ.Attributes{"data-topics": strings.Join(topics, " "), "data-since": From(ctx).EventCursor}
}

// liveAttributes make a part refetch its page when a topic changes.
func liveAttributes(ctx context.Context, f frame) templ.Attributes {
	if len(f.Topics) == 0 || f.PartialRefresh {
		return nil
	}
	attributes := templ.Attributes{
		"hx-get":    From(ctx).Path,
		"hx-select": "#main",
		// The numbers outside the content.
		"hx-select-oob": "#nav-workspaces:outerHTML,#nav-requests:outerHTML,#bell:outerHTML",
		"hx-trigger":    "weir:change from:body",
		"hx-swap":       "outerMorph",
		"hx-sync":       "this:queue last",
	}
	if f.Every > 0 {
		attributes["data-every"] = strconv.Itoa(f.Every)
	}
	return attributes
}

// userTopic covers the reader's own objects: workspaces, memberships.
func userTopic(ctx context.Context) string { return "user:" + number(From(ctx).User.ID) }

// followedTopics are the topics of a page and, for signed-in readers, their own.
func followedTopics(ctx context.Context, topics []string) []string {
	if From(ctx).User == nil || From(ctx).EventCursor == "" || slices.Contains(topics, userTopic(ctx)) {
		return topics
	}
	return append(slices.Clone(topics), userTopic(ctx))
}
