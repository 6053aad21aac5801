package web

import (
	"context"
	"io"
	"strings"

	"github.com/a-h/templ"
)

// Content is the rendered content of a page, without the frame around it, which depends
// on more: messages, numbers and the current place of the navigation.
type Content struct {
	frame frame
	html  string
}

type contentKey struct{}

func contentFrom(ctx context.Context) *Content {
	c, _ := ctx.Value(contentKey{}).(*Content)
	return c
}

// ContentOf renders the content of a page.
func ContentOf(ctx context.Context, page templ.Component) (Content, error) {
	var c Content
	var b strings.Builder
	err := page.Render(context.WithValue(ctx, contentKey{}, &c), &b)
	c.html = strings.Clone(b.String()) // the builder's memory is up to twice as large, and would be kept
	return c, err
}

// Size is the number of bytes that it holds.
func (c Content) Size() int { return len(c.html) }

// Render renders the content with a frame.
func (c Content) Render(ctx context.Context, w io.Writer) error {
	return document(c.frame).Render(templ.WithChildren(ctx, templ.Raw(c.html)), w)
}
