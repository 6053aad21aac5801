package handlers

import (
	"net/http"
	"slices"
	"strings"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"weir/models"
	"weir/policies"
	"weir/policies/notifications"
	"weir/web"
)

func (a *App) webhooksRoutes(p *echo.Group) {
	p.GET("/webhooks", a.webhooksPage)
	p.POST("/webhooks", a.createWebhookPage)
	p.POST("/webhooks/mail-test", a.testMailPage)
	p.GET("/webhooks/new", a.newWebhookPage)
	p.GET("/webhooks/:id", a.webhookPage)
	p.POST("/webhooks/:id", a.updateWebhookPage)
	p.GET("/webhooks/:id/delete", a.confirmDeleteWebhookPage)
	p.POST("/webhooks/:id/delete", a.deleteWebhookPage)
	p.GET("/webhooks/:id/rotate", a.confirmRotateWebhookSecretPage)
	p.POST("/webhooks/:id/rotate", a.rotateWebhookSecretPage)
	p.POST("/webhooks/:id/test", a.testWebhookPage)
	p.POST("/webhooks/:id/redeliver", a.redeliverAllPage)
	p.POST("/deliveries/:id/redeliver", a.redeliverPage)
}

// shownMails is how many e-mails the list of webhooks shows.
const shownMails = 20

func (a *App) webhooksPage(c echo.Context) error {
	ctx := c.Request().Context()
	rows, err := a.Notifications.Webhooks(ctx, actorOf(ctx))
	if err != nil {
		return err
	}
	mails, err := a.Notifications.Deliveries(ctx, actorOf(ctx), models.DeliveryFilter{Mail: true}, models.Page{Limit: shownMails})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, web.WebhooksPage(web.WebhooksView{Rows: rows, Mails: mails, ByMail: a.Notifications.ByMail()}))
}

func (a *App) newWebhookPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.WebhookWrite); err != nil {
		return err
	}
	f := formOf(0)
	f.Values["enabled"] = "1"
	return a.render(c, http.StatusOK, web.NewWebhookPage(web.WebhookView{Form: f, Private: a.Notifications.AllowPrivate}))
}

func (f *form) webhookInput() notifications.WebhookInput {
	return notifications.WebhookInput{Name: f.text("name"), URL: f.text("url"), Events: f.lines("events"), Enabled: f.bool("enabled"), Version: f.version()}
}

func (a *App) createWebhookPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	w, secret, err := a.Notifications.CreateWebhook(ctx, actorOf(ctx), f.webhookInput())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return web.NewWebhookPage(web.WebhookView{Form: f.asTyped().Refuse(err), Private: a.Notifications.AllowPrivate}), nil
		})
	}
	page, err := a.webhookForm(c, w.ID, web.WebhookView{Secret: secret})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusCreated, page)
}

// webhookForm is a webhook's page. v has the form that came back, if one did,
// and the secret that was just made, if one was.
func (a *App) webhookForm(c echo.Context, id int64, v web.WebhookView) (templ.Component, error) {
	ctx := c.Request().Context()
	var err error
	if v.Webhook, err = a.Notifications.Webhook(ctx, actorOf(ctx), id); err != nil {
		return nil, err
	}
	if !v.Form.Failed() {
		v.Form = formOf(v.Webhook.Version)
		v.Form.Values["name"], v.Form.Values["url"], v.Form.Values["events"] = v.Webhook.Name, v.Webhook.URL, strings.Join(v.Webhook.Events, "\n")
		if v.Webhook.Enabled {
			v.Form.Values["enabled"] = "1"
		}
	}
	v.Private = a.Notifications.AllowPrivate
	states := []string{models.DeliveryPending, models.DeliveryFailed, models.DeliveryDelivered, models.DeliveryGivenUp}
	if v.State = c.QueryParam("state"); !slices.Contains(states, v.State) {
		v.State = ""
	}
	v.Deliveries, err = a.Notifications.Deliveries(ctx, actorOf(ctx), models.DeliveryFilter{WebhookID: id, State: v.State}, pageAfter(c, listLimit))
	if n := len(v.Deliveries); n > 0 {
		v.Next = nextPage(c, n, listLimit, v.Deliveries[n-1].ID)
	}
	return web.WebhookPage(v), err
}

func (a *App) webhookPage(c echo.Context) error {
	page, err := a.webhookForm(c, number(c, "id"), web.WebhookView{})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) updateWebhookPage(c echo.Context) error {
	f, err := readForm(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	w, err := a.Notifications.UpdateWebhook(ctx, actorOf(ctx), number(c, "id"), f.webhookInput())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) {
			return a.webhookForm(c, number(c, "id"), web.WebhookView{Form: f.asTyped().Refuse(err)})
		})
	}
	return a.done(c, path("webhooks", w.ID), models.Say("Saved."))
}

// confirmWebhookForm asks something about a webhook; refused is why it asks
// again.
func (a *App) confirmWebhookForm(c echo.Context, question func(models.Webhook) web.ConfirmView, refused error) (templ.Component, error) {
	ctx := c.Request().Context()
	w, err := a.Notifications.Webhook(ctx, actorOf(ctx), number(c, "id"))
	v := question(w)
	if refused != nil {
		v.Form = v.Form.Refuse(refused)
	}
	return web.ConfirmPage(v), err
}

func (a *App) confirmDeleteWebhookPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.WebhookWrite); err != nil {
		return err
	}
	page, err := a.confirmWebhookForm(c, web.ConfirmDeleteWebhook, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) deleteWebhookPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	if err := a.Notifications.DeleteWebhook(ctx, actorOf(ctx), number(c, "id"), f.version()); err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.confirmWebhookForm(c, web.ConfirmDeleteWebhook, err) })
	}
	return a.done(c, "/webhooks", models.Say("Webhook deleted."))
}

func (a *App) confirmRotateWebhookSecretPage(c echo.Context) error {
	if err := a.Access.Check(actorOf(c.Request().Context()), policies.Platform, policies.WebhookWrite); err != nil {
		return err
	}
	page, err := a.confirmWebhookForm(c, web.ConfirmRotateSecret, nil)
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) rotateWebhookSecretPage(c echo.Context) error {
	ctx := c.Request().Context()
	f, err := readForm(c)
	if err != nil {
		return err
	}
	w, secret, err := a.Notifications.RotateSecret(ctx, actorOf(ctx), number(c, "id"), f.version())
	if err != nil {
		return a.refused(c, err, func() (templ.Component, error) { return a.confirmWebhookForm(c, web.ConfirmRotateSecret, err) })
	}
	page, err := a.webhookForm(c, w.ID, web.WebhookView{Secret: secret})
	if err != nil {
		return err
	}
	return a.render(c, http.StatusOK, page)
}

func (a *App) testWebhookPage(c echo.Context) error {
	ctx := c.Request().Context()
	id := number(c, "id")
	if err := a.Notifications.TestWebhook(ctx, actorOf(ctx), id); err != nil {
		return err
	}
	return a.done(c, path("webhooks", id), models.Say("The test message is being sent."))
}

func (a *App) testMailPage(c echo.Context) error {
	ctx := c.Request().Context()
	if err := a.Notifications.TestMail(ctx, actorOf(ctx)); err != nil {
		return err
	}
	return a.done(c, "/webhooks", models.Say("The test message is being sent."))
}

func (a *App) redeliverAllPage(c echo.Context) error {
	ctx := c.Request().Context()
	id := number(c, "id")
	n, err := a.Notifications.RedeliverAll(ctx, actorOf(ctx), id)
	if err != nil {
		return err
	}
	return a.done(c, path("webhooks", id), models.Say("Resending %d messages.", n))
}

func (a *App) redeliverPage(c echo.Context) error {
	ctx := c.Request().Context()
	d, err := a.Notifications.Redeliver(ctx, actorOf(ctx), number(c, "id"))
	if err != nil {
		return err
	}
	to := "/webhooks"
	if d.WebhookID != nil {
		to = path("webhooks", *d.WebhookID)
	}
	return a.done(c, to, models.Say("Resending the message."))
}
