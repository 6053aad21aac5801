package docs

import (
	"strings"
	"testing"
)

func TestPages(t *testing.T) {
	for k, p := range pages() {
		if p.Title == "" {
			t.Errorf("%v has no title", k)
		}
		for _, forbidden := range []string{"raw HTML omitted", "<script", " style=", "javascript:", ".md\"", ".md#"} {
			if strings.Contains(p.HTML, forbidden) {
				t.Errorf("%v contains %q", k, forbidden)
			}
		}
	}
	for _, g := range Contents(english) {
		if g.Title == "" || len(g.Pages) == 0 {
			t.Errorf("the list has an empty group %q", g.Title)
		}
		for _, p := range g.Pages {
			if _, ok := Find(p.Name, english); !ok {
				t.Errorf("there is no page %s", p.Name)
			}
		}
	}
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		name, lang, title string
	}{
		{"", english, "Documentation"},
		{"how-to/tls", english, "Serve it over TLS"},
		{"how-to/tls", chinese, "Serve it over TLS"},
		{"how-to/tls.md", english, ""},
		{"README", english, ""},
		{"nothing", english, ""},
		{"../go", english, ""},
	} {
		if p, ok := Find(c.name, c.lang); p.Title != c.title || ok != (c.title != "") {
			t.Errorf("%s in %s is %q, %t", c.name, c.lang, p.Title, ok)
		}
	}
}

func TestRender(t *testing.T) {
	p, err := renderPage("how-to/x.md", []byte("# A & b: (c)\n\n<b onclick=x>raw</b> [one](y.md#z) [two](../README.md) [three](https://example.org/a.md) ![p](../p.svg) [js](javascript:x)\n\n"+
		"## A & b: (c)\n\n| a | b |\n| --- | --- |\n| `x<y` | 2 |\n\n```bash runnable\necho <1>\n```\n\n## 工作区\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`<h1 id="a--b-c">A &amp; b: (c)</h1>`, `<h2 id="a--b-c-1">`, `href="/docs/how-to/y#z"`, `href="/docs"`, `href="https://example.org/a.md"`,
		`src="/docs/p.svg"`, `<td><code>x&lt;y</code></td>`, "<pre class=\"code\" tabindex=\"0\"><code>echo &lt;1&gt;\n</code></pre>", `<h2 id="工作区">`, `href=""`} {
		if !strings.Contains(p.HTML, want) {
			t.Errorf("no %s in\n%s", want, p.HTML)
		}
	}
	if strings.Contains(p.HTML, "onclick") {
		t.Error("raw HTML is rendered")
	}
	if p.Title != "A & b: (c)" || len(p.sections) != 3 || !strings.Contains(p.sections[1].text, "x<y 2") || !strings.Contains(p.sections[1].text, "echo <1>") {
		t.Errorf("read as %q, %+v", p.Title, p.sections)
	}
}

func TestSearch(t *testing.T) {
	first := func(query string) string {
		hits := Search(query, english)
		if len(hits) == 0 {
			return ""
		}
		return hits[0].Address
	}
	for query, want := range map[string]string{
		"systemd": "/docs/how-to/systemd", "NGINX": "/docs/how-to/tls#nginx", "hash chain entries": "/docs/reference/audit-log",
		"weir migrate copy": "/docs/reference/cli#weir-migrate-copy", "": "", "  ": "", "zebra": "", "<script>": "",
	} {
		if got := first(query); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q finds %q first, not %q", query, got, want)
		}
	}
	if words := wordsOf("a b a  c " + strings.Repeat("the long query ", 100_000)); len(words) > maxWords || strings.Join(words[:3], " ") != "a b c" {
		t.Errorf("words: %v", words)
	}
	if hits := Search("the", english); len(hits) != maxHits {
		t.Errorf("a common word finds %d sections", len(hits))
	}
	for _, h := range Search("workspace", english) {
		if !strings.Contains(strings.ToLower(h.Excerpt+h.Title+h.Page.Title), "workspace") || len(h.Excerpt) > 2*maxExcerpt {
			t.Errorf("the excerpt of %s is %q", h.Address, h.Excerpt)
		}
	}
}
