package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

func (a *App) notificationsRoutes(p *echo.Group) {
	p.GET("/notifications", a.page(a.notificationsPage))
	p.GET("/notifications/bell", a.bellPage)
	p.POST("/notifications/read", a.submit(nil, a.readNotificationsPage))
	p.GET("/notifications/:id", a.openNotificationPage)
	p.POST("/notifications/:id/read", a.readNotificationPage)
	p.POST("/account/notifications", a.submit(nil, a.setNotificationPreferencePage))
}

func (a *App) notificationsPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	after := pageAfter(c)
	rows, err := a.Notifications.Inbox(ctx, actorOf(ctx), after)
	if err != nil {
		return nil, err
	}
	v := web.NotificationsView{Rows: rows, First: after.After == 0}
	if v.Unread, err = a.Notifications.Unread(ctx, actorOf(ctx)); err != nil {
		return nil, err
	}
	if v.Extensions, err = a.notificationExtensions(ctx, rows); err != nil {
		return nil, err
	}
	v.Next = nextPage(c, rows, func(n models.Notification) int64 { return n.ID })
	return web.NotificationsPage(v), nil
}

// bellPage is the part of a page that fetches itself.
func (a *App) bellPage(c echo.Context) error { return a.render(c, http.StatusOK, web.Bell()) }

// openNotificationPage marks a notification as read and redirects to its subject.
func (a *App) openNotificationPage(c echo.Context) error {
	ctx := c.Request().Context()
	n, err := a.Notifications.Read(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if n.Link == "" {
		n.Link = "/notifications"
	}
	return c.Redirect(http.StatusSeeOther, models.LocalPath(n.Link))
}

func (a *App) readNotificationPage(c echo.Context) error {
	ctx := c.Request().Context()
	if _, err := a.Notifications.Read(ctx, actorOf(ctx), number(c, "id")); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/notifications")
}

func (a *App) readNotificationsPage(ctx context.Context, _ echo.Context, f *form) (redirect, error) {
	upTo, err := strconv.ParseInt(f.text("up_to"), 10, 64)
	if err != nil || upTo < 0 {
		return redirect{}, models.Invalid("up_to", "must be a whole number, 0 or greater")
	}
	return redirect{"/notifications", models.Say("All notifications marked as read.")}, a.Notifications.ReadAll(ctx, actorOf(ctx), upTo)
}

func (a *App) setNotificationPreferencePage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	return redirect{"/account", models.Say("Saved.")}, a.Notifications.SetPreference(ctx, actorOf(ctx), f.bool("by_mail"),
		a.language(c.Request()))
}

// notificationChoice is the actor's delivery preference.
func (a *App) notificationChoice(ctx context.Context) (web.NotificationChoice, error) {
	p, err := a.Notifications.Preference(ctx, actorOf(ctx))
	return web.NotificationChoice{Offered: a.Notifications.ByMail(), ByMail: !p.PortalOnly}, err
}

// notificationExtensions are the possible extensions of the end dates in notifications,
// by the notifications' IDs; none where the end has been moved since.
func (a *App) notificationExtensions(ctx context.Context, rows []models.Notification) (map[int64]models.Extension, error) {
	var projects []int64
	for _, n := range rows {
		if n.ProjectID != nil {
			projects = append(projects, *n.ProjectID)
		}
	}
	list, err := a.Requests.Extensions(ctx, actorOf(ctx), projects)
	found := map[int64]models.Extension{}
	for _, n := range rows {
		for _, e := range list {
			if n.ProjectID != nil && *n.ProjectID == e.ProjectID && strings.HasPrefix(n.Kind, e.Kind+".") {
				found[n.ID] = e
			}
		}
	}
	return found, err
}
