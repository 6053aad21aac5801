package web

import (
	"context"

	"github.com/a-h/templ"

	"weir/models"
)

// NotificationsView is the reader's inbox.
type NotificationsView struct {
	Rows   []models.Notification
	Unread int64
	Next   string // address of the next page, empty on the last
	First  bool   // page, with the newest ones

	Extensions map[int64]models.Extension // of the ends that notifications are about, by their ids
}

// bellPath is where the bell alone is read again.
const bellPath = "/notifications/bell"

// newest is the id of the newest notification on the page.
func (v NotificationsView) newest() string {
	if len(v.Rows) == 0 {
		return "0"
	}
	return number(v.Rows[0].ID)
}

// NotificationChoice is the reader's delivery preference.
type NotificationChoice struct {
	Offered bool // a mail server is configured
	ByMail  bool
}

// bellLabel is the text of the bell.
func bellLabel(ctx context.Context) string {
	if n := From(ctx).Nav.Notifications; n > 0 {
		return T(ctx, "Notifications: %d unread", n)
	}
	return T(ctx, "Notifications")
}

// bellCount is the number on the bell, which is small.
func bellCount(n int) string {
	if n > 99 {
		return "99+"
	}
	return number(int64(n))
}

// bellAttributes let the bell fetch itself on pages that do not.
func bellAttributes(ctx context.Context, f frame) templ.Attributes {
	if liveAttributes(ctx, f) != nil {
		return nil
	}
	return templ.Attributes{"hx-get": bellPath, "hx-trigger": "weir:change from:body",
		"hx-swap": "outerMorph", "hx-target": "this"}
}
