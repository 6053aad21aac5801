package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/web"
)

func (a *App) notificationsRoutes(p *echo.Group) {
	p.GET("/notifications", a.notificationsPage)
	p.GET("/notifications/bell", a.bellPage)
	p.POST("/notifications/read", a.readNoticesPage)
	p.GET("/notifications/:id", a.openNoticePage)
	p.POST("/notifications/:id/read", a.readNoticePage)
	p.POST("/account/notifications", a.setNoticePreferencePage)
}

func (a *App) notificationsPage(c echo.Context) error {
	ctx := c.Request().Context()
	rows, err := a.Notifications.Inbox(ctx, actorOf(ctx), pageAfter(c, listLimit))
	if err != nil {
		return err
	}
	v := web.NotificationsView{Rows: rows}
	if v.Unread, err = a.Notifications.Unread(ctx, actorOf(ctx)); err != nil {
		return err
	}
	if v.Extensions, err = a.notificationExtensions(ctx, rows); err != nil {
		return err
	}
	if n := len(rows); n > 0 {
		v.Next = nextPage(c, n, listLimit, rows[n-1].ID)
	}
	return a.render(c, http.StatusOK, web.NotificationsPage(v))
}

// bellPage is the part of a page that fetches itself.
func (a *App) bellPage(c echo.Context) error { return a.render(c, http.StatusOK, web.Bell()) }

// openNoticePage leads to what a notice is about; with that it is read.
func (a *App) openNoticePage(c echo.Context) error {
	ctx := c.Request().Context()
	n, err := a.Notifications.Read(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	if n.Link == "" {
		n.Link = "/notifications"
	}
	return c.Redirect(http.StatusSeeOther, localPath(n.Link))
}

func (a *App) readNoticePage(c echo.Context) error {
	ctx := c.Request().Context()
	if _, err := a.Notifications.Read(ctx, actorOf(ctx), number(c, "id")); err != nil {
		return err
	}
	return c.Redirect(http.StatusSeeOther, "/notifications")
}

func (a *App) readNoticesPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	upTo, err := strconv.ParseInt(f.text("up_to"), 10, 64)
	if err != nil || upTo < 0 {
		return models.Invalid("up_to", "must be a whole number, 0 or greater")
	}
	if err := a.Notifications.ReadAll(ctx, actorOf(ctx), upTo); err != nil {
		return err
	}
	return a.done(c, "/notifications", models.Say("All notifications marked as read."))
}

func (a *App) setNoticePreferencePage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if err := a.Notifications.Prefer(ctx, actorOf(ctx), f.bool("by_mail"), a.language(c.Request())); err != nil {
		return err
	}
	return a.done(c, "/account", models.Say("Saved."))
}

// notificationChoice is how the actor wants to be told.
func (a *App) notificationChoice(ctx context.Context) (web.NotificationChoice, error) {
	p, err := a.Notifications.Preference(ctx, actorOf(ctx))
	return web.NotificationChoice{Offered: a.Notifications.ByMail(), ByMail: !p.PortalOnly}, err
}

// notificationExtensions are what can be done about the ends that notices tell of,
// by the notices' ids: nothing where the end was moved far away since.
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
