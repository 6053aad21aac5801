package web

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"weir/models"
)

func render(t *testing.T, s sample, lang string) []byte {
	t.Helper()
	frame := Page{Lang: lang, User: s.by, Path: s.path, Now: now, Version: "0.1.0", Nav: NavCounts{Workspaces: 3, Notifications: 4}}
	if s.by != nil {
		frame.Can.Launch = true
		if s.by.Admin {
			frame.Can = models.PlatformPermissions{CreateProjects: true, ReadAccounts: true, EditAccounts: true, EditEnvironments: true, EditWebhooks: true, EditCurators: true,
				EditCapacity: true, ReadProviders: true, EditProviders: true, EditDevices: true, Launch: true}
		}
	}
	if s.name == "project" {
		frame.Flash = Flash{Kind: "ok", Text: models.Say("Saved.")}
	}
	var b bytes.Buffer
	if err := s.page.Render(With(t.Context(), frame), &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestPages holds every page to the content security policy and to what
// readers of any kind need.
func TestPages(t *testing.T) {
	for _, lang := range []string{models.English, models.Chinese} {
		for _, s := range samples() {
			t.Run(lang+"/"+s.name, func(t *testing.T) {
				text := render(t, s, lang)
				doc, err := html.Parse(bytes.NewReader(text))
				if err != nil {
					t.Fatal(err)
				}
				check := newPageCheck(t)
				if strings.HasPrefix(s.name, "gone") {
					check.portal = portal
				}
				for n := range doc.Descendants() {
					if n.Type == html.ElementNode {
						check.element(n)
					}
				}
				check.references()
				if bytes.Contains(text, []byte("%!")) {
					t.Errorf("a text was formatted with the wrong arguments: %s", around(text, "%!"))
				}
			})
		}
	}
}

func around(text []byte, needle string) string {
	i := bytes.Index(text, []byte(needle))
	return string(text[max(0, i-40):min(len(text), i+40)])
}

type pageCheck struct {
	t       *testing.T
	portal  string // the only foreign origin, if any
	ids     map[string]bool
	refs    []string
	labels  map[string]bool // ids that a label names
	inputs  []*html.Node
	heading int
}

func newPageCheck(t *testing.T) *pageCheck {
	return &pageCheck{t: t, ids: map[string]bool{}, labels: map[string]bool{}}
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func (c *pageCheck) element(n *html.Node) {
	for _, a := range n.Attr {
		switch {
		case a.Key == "style" || strings.HasPrefix(a.Key, "on") || strings.HasPrefix(a.Key, "hx-on"):
			c.t.Errorf("<%s> has the attribute %s, which the policy forbids", n.Data, a.Key)
		case a.Key == "id":
			if c.ids[a.Val] {
				c.t.Errorf("two elements have the id %q", a.Val)
			}
			c.ids[a.Val] = true
		case a.Key == "href" || a.Key == "src" || a.Key == "action" || a.Key == "formaction" || a.Key == "hx-get":
			c.address(n, a.Val)
		case a.Key == "aria-describedby" || a.Key == "aria-labelledby":
			c.refs = append(c.refs, strings.Fields(a.Val)...)
		case a.Key == "for":
			c.refs = append(c.refs, a.Val)
			c.labels[a.Val] = true
		}
	}
	switch n.Data {
	case "style":
		c.t.Error("there is a <style> element")
	case "script":
		if attribute(n, "src") == "" || n.FirstChild != nil {
			c.t.Error("there is an inline script")
		}
	case "input", "select", "textarea":
		if attribute(n, "type") != "hidden" {
			c.inputs = append(c.inputs, n)
		}
	case "h1", "h2", "h3", "h4":
		level := int(n.Data[1] - '0')
		if level > c.heading+1 {
			c.t.Errorf("%s follows h%d", n.Data, c.heading)
		}
		if n.FirstChild == nil {
			c.t.Errorf("an %s is empty", n.Data)
		}
		c.heading = level
	}
}

func (c *pageCheck) address(n *html.Node, to string) {
	switch {
	case c.portal != "" && strings.HasPrefix(to, c.portal+"/"), to == "data:," && c.portal != "":
	case n.Data == "img" && strings.HasPrefix(to, "data:image/"):
	case strings.HasPrefix(to, "#"):
		c.refs = append(c.refs, to[1:])
	case !strings.HasPrefix(to, "/") || strings.HasPrefix(to, "//"):
		c.t.Errorf("<%s> leads outside: %q", n.Data, to)
	}
}

func (c *pageCheck) references() {
	for _, ref := range c.refs {
		if !c.ids[ref] {
			c.t.Errorf("nothing has the id %q that is referred to", ref)
		}
	}
	for _, n := range c.inputs {
		if !c.labels[attribute(n, "id")] && !inLabel(n) {
			c.t.Errorf("the input %q has no label", cmp.Or(attribute(n, "name"), n.Data))
		}
	}
}

func inLabel(n *html.Node) bool {
	for p := range n.Ancestors() {
		if p.Data == "label" {
			return true
		}
	}
	return false
}

// TestScreenshots writes every page with the static files, to be looked at
// where WEIR_SCREENSHOTS names a directory.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("WEIR_SCREENSHOTS")
	if dir == "" {
		dir = t.TempDir()
	}
	if err := os.CopyFS(filepath.Join(dir, filepath.Dir(Asset("x"))), staticSub()); err != nil {
		t.Fatal(err)
	}
	for _, lang := range []string{models.English, models.Chinese} {
		for _, s := range samples() {
			text := bytes.ReplaceAll(render(t, s, lang), []byte(portal), nil)
			if err := os.WriteFile(filepath.Join(dir, s.name+"."+lang+".html"), text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}
