package handlers

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/models/store"
	"weir/policies/notifications"
	"weir/web"
)

func (a *App) webhooksRoutes(p *echo.Group) {
	p.GET("/webhooks", a.page(a.webhooksPage))
	p.POST("/webhooks", a.createWebhookPage)
	p.POST("/webhooks/mail-test", a.submit(nil, a.testMailPage))
	p.GET("/webhooks/new", a.page(a.newWebhookPage))
	p.GET("/webhooks/:id", a.page(a.webhookPage))
	p.POST("/webhooks/:id", a.submit(a.webhookPage, a.updateWebhookPage))
	p.GET("/webhooks/:id/delete", a.page(a.confirmDeleteWebhookPage))
	p.POST("/webhooks/:id/delete", a.submit(a.confirmDeleteWebhookPage, a.deleteWebhookPage))
	p.GET("/webhooks/:id/rotate", a.page(a.confirmRotateWebhookSecretPage))
	p.POST("/webhooks/:id/rotate", a.rotateWebhookSecretPage)
	p.POST("/webhooks/:id/test", a.submit(nil, a.testWebhookPage))
	p.POST("/webhooks/:id/redeliver", a.submit(nil, a.redeliverAllPage))
	p.POST("/deliveries/:id/redeliver", a.submit(nil, a.redeliverPage))
}

// shownMails is the number of emails on the page of all webhooks.
const shownMails = 20

func (a *App) webhooksPage(ctx context.Context, _ echo.Context) (templ.Component, error) {
	rows, err := a.Notifications.Webhooks(ctx, actorOf(ctx))
	if err != nil {
		return nil, err
	}
	mails, err := a.Notifications.Deliveries(ctx, actorOf(ctx), store.DeliveryFilter{Mail: true}, store.Page{Limit: shownMails})
	return web.WebhooksPage(web.WebhooksView{Rows: rows, Mails: mails, ByMail: a.Notifications.ByMail()}), err
}

func (a *App) newWebhookPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	_, err := a.Notifications.WebhookForm(ctx, actorOf(ctx), 0)
	f := formOf(0)
	f.Values["enabled"] = "1"
	return web.NewWebhookPage(web.WebhookView{Form: submittedOr(c, f), Private: a.Notifications.AllowPrivate}), err
}

func (f *form) webhookInput() notifications.WebhookInput {
	return notifications.WebhookInput{Name: f.text("name"), URL: f.text("url"), Events: f.values["events"], Enabled: f.bool("enabled"),
		Version: f.version()}
}

func (a *App) createWebhookPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	w, secret, err := a.Notifications.CreateWebhook(ctx, actorOf(ctx), f.webhookInput())
	if err != nil {
		return a.refused(c, f, err, a.newWebhookPage)
	}
	return a.showPage(c, http.StatusCreated, a.webhookWith(w.ID, secret))
}

// webhookWith is a webhook's page with a new secret.
func (a *App) webhookWith(id int64, secret string) pageFunc {
	return func(ctx context.Context, c echo.Context) (templ.Component, error) {
		w, err := a.Notifications.Webhook(ctx, actorOf(ctx), id)
		if err != nil {
			return nil, err
		}
		v := web.WebhookView{Webhook: w, Secret: secret, Form: submittedOr(c, webhookForm(w)), Private: a.Notifications.AllowPrivate}
		states := []string{models.DeliveryPending, models.DeliveryFailed, models.DeliveryDelivered, models.DeliveryGivenUp}
		if v.State = c.QueryParam("state"); !slices.Contains(states, v.State) {
			v.State = ""
		}
		v.Deliveries, err = a.Notifications.Deliveries(ctx, actorOf(ctx), store.DeliveryFilter{WebhookID: id, State: v.State},
			pageAfter(c))
		v.Next = nextPage(c, v.Deliveries, func(d models.DeliveryView) int64 { return d.ID })
		return web.WebhookPage(v), err
	}
}

func webhookForm(w models.Webhook) web.Form {
	f := formOf(w.Version)
	f.Values["name"], f.Values["url"], f.Values["events"] = w.Name, w.URL, strings.Join(w.Events, " ")
	if w.Enabled {
		f.Values["enabled"] = "1"
	}
	return f
}

func (a *App) webhookPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	return a.webhookWith(number(c, "id"), "")(ctx, c)
}

func (a *App) updateWebhookPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	w, err := a.Notifications.UpdateWebhook(ctx, actorOf(ctx), number(c, "id"), f.webhookInput())
	return redirect{path("webhooks", w.ID), models.Say("Saved.")}, err
}

func (a *App) confirmDeleteWebhookPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	w, err := a.Notifications.WebhookForm(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmDeleteWebhook(w)), err
}

func (a *App) deleteWebhookPage(ctx context.Context, c echo.Context, f *form) (redirect, error) {
	err := a.Notifications.DeleteWebhook(ctx, actorOf(ctx), number(c, "id"), f.version())
	return redirect{"/webhooks", models.Say("Webhook deleted.")}, err
}

func (a *App) confirmRotateWebhookSecretPage(ctx context.Context, c echo.Context) (templ.Component, error) {
	w, err := a.Notifications.WebhookForm(ctx, actorOf(ctx), number(c, "id"))
	return confirmPage(c, web.ConfirmRotateSecret(w)), err
}

func (a *App) rotateWebhookSecretPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	w, secret, err := a.Notifications.RotateSecret(ctx, actorOf(ctx), number(c, "id"), f.version())
	if err != nil {
		return a.refused(c, f, err, a.confirmRotateWebhookSecretPage)
	}
	return a.showPage(c, http.StatusOK, a.webhookWith(w.ID, secret))
}

func (a *App) testWebhookPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	id := number(c, "id")
	err := a.Notifications.TestWebhook(ctx, actorOf(ctx), id)
	return redirect{path("webhooks", id), models.Say("The test message is being sent.")}, err
}

func (a *App) testMailPage(ctx context.Context, _ echo.Context, _ *form) (redirect, error) {
	return redirect{"/webhooks", models.Say("The test message is being sent.")}, a.Notifications.TestMail(ctx, actorOf(ctx))
}

func (a *App) redeliverAllPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	id := number(c, "id")
	n, err := a.Notifications.RedeliverAll(ctx, actorOf(ctx), id)
	return redirect{path("webhooks", id), models.Say("Resending %d messages.", n)}, err
}

func (a *App) redeliverPage(ctx context.Context, c echo.Context, _ *form) (redirect, error) {
	d, err := a.Notifications.Redeliver(ctx, actorOf(ctx), number(c, "id"))
	to := "/webhooks"
	if d.WebhookID != nil {
		to = path("webhooks", *d.WebhookID)
	}
	return redirect{to, models.Say("Resending the message.")}, err
}
