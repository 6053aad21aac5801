package web

import (
	"context"

	"github.com/a-h/templ"

	"weir/models"
)

// NoticesView is the reader's inbox.
type NoticesView struct {
	Rows   []models.Notice
	Unread int64
	Next   string // address of the next page, empty on the last

	Extensions map[int64]models.Extension // of the ends that notifications are about, by their ids
}

// newest is the id of the newest notification on the page.
func (v NoticesView) newest() string {
	if len(v.Rows) == 0 {
		return "0"
	}
	return id(v.Rows[0].ID)
}

// NoticeChoice is how the reader wants to be notified.
type NoticeChoice struct {
	Offered bool // e-mail goes out at all
	ByMail  bool
}

// bellLabel says what the bell shows.
func bellLabel(ctx context.Context) string {
	if n := From(ctx).Nav.Notices; n > 0 {
		return T(ctx, "Notices: %d unread", n)
	}
	return T(ctx, "Notices")
}

// bellCount is the number on the bell, which is small.
func bellCount(n int) string {
	if n > 99 {
		return "99+"
	}
	return id(int64(n))
}

// bellAttributes let the bell fetch itself on pages that do not.
func bellAttributes(ctx context.Context, f frame) templ.Attributes {
	if liveAttributes(ctx, f) != nil {
		return nil
	}
	return templ.Attributes{"hx-get": "/notices/bell", "hx-trigger": "weir:change from:body", "hx-swap": "outerMorph", "hx-target": "this"}
}
