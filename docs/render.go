package docs

import (
	"bytes"
	"path"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown is GitHub's, without HTML: a page contains nothing but what Markdown has.
var markdown = goldmark.New(
	goldmark.WithExtensions(extension.Table, extension.Strikethrough),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(renderer.WithNodeRenderers(util.Prioritized(blocks{}, 1))),
)

// section is a part of a page from a heading to the next, for the search.
type section struct {
	title, anchor string
	text, lower   string // without markup; in lower case
}

func renderPage(file string, source []byte) (p Page, err error) {
	doc := markdown.Parser().Parse(text.NewReader(source), parser.WithContext(parser.NewContext(parser.WithIDs(ids{}))))
	err = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Link:
			n.Destination = []byte(resolve(file, string(n.Destination)))
		case *ast.Image:
			n.Destination = []byte(resolve(file, string(n.Destination)))
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		return p, err
	}
	var out bytes.Buffer
	err = markdown.Renderer().Render(&out, source, doc)
	p.HTML, p.sections = out.String(), sectionsOf(doc, source)
	if len(p.sections) > 0 {
		p.Title = p.sections[0].title
	}
	return p, err
}

// resolve turns a link between files into one between addresses of the portal.
func resolve(file, link string) string {
	target, anchor, _ := strings.Cut(link, "#")
	if strings.Contains(link, ":") || target == "" {
		return link
	}
	target = path.Join(path.Dir(file), target)
	if name, ok := strings.CutSuffix(target, ".md"); ok {
		target = strings.TrimSuffix(name, "."+chinese)
		if target == list {
			target = ""
		}
	}
	if target = address(target); anchor != "" {
		target += "#" + anchor
	}
	return target
}

// ids are those that GitHub gives to headings.
type ids map[string]bool

func (taken ids) Generate(value []byte, _ ast.NodeKind) []byte {
	id := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, string(value))
	for taken[id] {
		id += "-1"
	}
	taken[id] = true
	return []byte(id)
}

func (taken ids) Put(value []byte) { taken[string(value)] = true }

// blocks renders code so that it can be scrolled with the keyboard.
type blocks struct{}

func (blocks) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, renderCode)
	r.Register(ast.KindCodeBlock, renderCode)
}

func renderCode(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		_, err := w.WriteString("</code></pre>\n")
		return ast.WalkContinue, err
	}
	_, err := w.WriteString(`<pre class="code" tabindex="0"><code>`)
	for i := range n.Lines().Len() {
		line := n.Lines().At(i)
		html.DefaultWriter.RawWrite(w, line.Value(source))
	}
	return ast.WalkContinue, err
}

// sectionsOf splits a page at its headings.
func sectionsOf(doc ast.Node, source []byte) (list []section) {
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok {
			id, _ := h.AttributeString("id")
			anchor, _ := id.([]byte)
			list = append(list, section{title: plain(h, source), anchor: string(anchor)})
		} else if len(list) > 0 {
			last := &list[len(list)-1]
			last.text = strings.TrimSpace(last.text + " " + plain(n, source))
		}
	}
	for i := range list {
		list[i].lower = strings.ToLower(list[i].text)
	}
	return list
}

// plain is the text of a node, without markup.
func plain(n ast.Node, source []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // the function returns no error
		switch n := n.(type) {
		case *ast.Text:
			if entering {
				b.Write(n.Value(source))
				if n.SoftLineBreak() || n.HardLineBreak() {
					b.WriteByte(' ')
				}
			}
		case *ast.FencedCodeBlock, *ast.CodeBlock:
			if entering {
				b.Write(n.Lines().Value(source))
			}
		default:
			if n.Type() == ast.TypeBlock && !entering {
				b.WriteByte(' ')
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}
