package rules

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// documentation lists the README and all pages of docs, relative to root.
func documentation(t *testing.T) []string {
	t.Helper()
	pages := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".md") {
			return err
		}
		name, err := filepath.Rel(root, file)
		pages = append(pages, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	fencePattern   = regexp.MustCompile("(?ms)^[ \\t]*```.*?^[ \\t]*```$")
	linkPattern    = regexp.MustCompile(`\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"`)
	headingPattern = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// Every relative link leads to a file, and to a heading in it. A page is reachable from
// the list of pages, and links only to what the portal serves: the folder docs.
func TestLinks(t *testing.T) {
	linked := map[string]bool{"README.md": true, "docs/README.md": true}
	for _, page := range documentation(t) {
		text := prose(t, page)
		for _, m := range linkPattern.FindAllStringSubmatch(text, -1) {
			link := m[1] + m[2]
			if strings.Contains(link, "://") || strings.HasPrefix(link, "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link, "#")
			target := page
			if file != "" {
				target = path.Join(path.Dir(page), file)
			}
			if page == "docs/README.md" {
				linked[target] = true
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil || !strings.HasPrefix(target, "docs/") && page != "README.md" {
				t.Errorf("%s: the link to %s leads nowhere", page, link)
			} else if anchor != "" && !anchors(prose(t, target))[anchor] {
				t.Errorf("%s: %s has no heading #%s", page, target, anchor)
			}
		}
	}
	for _, page := range documentation(t) {
		if !linked[page] && !strings.HasSuffix(page, ".zh.md") {
			t.Errorf("docs/README.md does not list %s", page)
		}
	}
}

// prose is the text of a page without code.
func prose(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return fencePattern.ReplaceAllString(string(text), "")
}

// anchors are the ids that GitHub gives to the headings of a page.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, m := range headingPattern.FindAllStringSubmatch(text, -1) {
		found[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, m[1])] = true
	}
	return found
}

var messagePattern = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// The messages of the page about troubleshooting are those that Weir shows: their parts
// between “…” are in the catalog or in the source. Of other programs' there are few.
func TestTroubleshootingHasRealMessages(t *testing.T) {
	said := "address already in use"
	for _, w := range readCatalog[wording](t, "en") {
		said += "\n" + w.One + "\n" + w.Other
	}
	for _, s := range tree(t) {
		if s.test {
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, s.path))
		if err != nil {
			t.Fatal(err)
		}
		said += string(source)
	}
	messages := messagePattern.FindAllStringSubmatch(prose(t, "docs/troubleshooting.md"), -1)
	if len(messages) < 20 {
		t.Errorf("the page has only %d messages", len(messages))
	}
	for _, m := range messages {
		for part := range strings.SplitSeq(m[1], "…") {
			if !strings.Contains(said, part) {
				t.Errorf("nothing says %q of %q", part, m[1])
			}
		}
	}
}
