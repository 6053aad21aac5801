package web

import (
	"strings"
	"time"

	"weir/models"
)

func sampleNotifications() NotificationsView {
	return NotificationsView{Unread: 1, First: true, Next: "/notifications?cursor=1", Rows: []models.Notification{
		{ID: 3, Kind: "request.approved", Text: models.Say("The project %s has been created.", "vision"), Link: "/projects/1", CreatedAt: ago(time.Minute)},
		{ID: 2, Kind: "test", Text: models.Say("This is a test. Email delivery works."), CreatedAt: ago(time.Hour), ReadAt: ptr(ago(time.Minute))}}}
}

func sampleWebhook(secret, state string) WebhookView {
	until := later
	return WebhookView{Secret: secret, State: state, Next: "/webhooks/1?cursor=1", Deliveries: sampleDeliveries(),
		Webhook: models.Webhook{ID: 1, Name: "chat", URL: "https://chat.example.org/hooks/x", Enabled: true, OldUntil: &until, Version: 2},
		Form:    Form{Version: 2, Values: map[string]string{"name": "chat", "url": "https://chat.example.org/hooks/x", "enabled": "1"}}}
}

func sampleDeliveries() []models.DeliveryView {
	one := models.Delivery{ID: 1, Key: strings.Repeat("0a", 16), WebhookID: ptr(int64(1)), Kind: "request.approved", State: models.DeliveryDelivered, Attempts: 1,
		Status: 200, Response: "ok", CreatedAt: ago(time.Hour), FinishedAt: ptr(ago(time.Hour))}
	failing, gone, fresh := one, one, one
	failing.State, failing.Status, failing.Problem, failing.NextAt = models.DeliveryFailed, 500, models.Say("The receiver returned status %d.", 500), later
	gone.State, gone.Status, gone.Response, gone.Problem = models.DeliveryGivenUp, 0, "", models.Say("The receiver did not respond within %d seconds.", 10)
	fresh.State, fresh.Status, fresh.Response, fresh.Attempts = models.DeliveryPending, 0, "", 0
	return []models.DeliveryView{{Delivery: fresh, WebhookName: "chat"}, {Delivery: failing, WebhookName: "chat"}, {Delivery: gone, WebhookName: "chat"},
		{Delivery: one, WebhookName: "chat", UserEmail: "li.wei@example.org"}}
}

func notificationSamples() []sample {
	refused := Form{Values: map[string]string{"name": "chat", "url": "http://x"}}.Refuse(models.Invalid("url", "must start with https://"))
	hook := sampleWebhook("", "").Webhook
	broken := sampleWebhook("", "failed")
	broken.Form = refused
	return []sample{
		{"notifications", "/notifications", &li, NotificationsPage(sampleNotifications())},
		{"notifications-none", "/notifications", &root, NotificationsPage(NotificationsView{})},
		{"account-mail", "/account", &li, AccountPage(AccountView{Notifications: NotificationChoice{Offered: true, ByMail: true}})},
		{"webhooks", "/webhooks", &root, WebhooksPage(WebhooksView{ByMail: true, Mails: sampleDeliveries(), Rows: []models.Webhook{hook, {ID: 2, Name: "old", URL: "https://old.example.org", Events: []string{"request.*"}}}})},
		{"webhooks-none", "/webhooks", &root, WebhooksPage(WebhooksView{})},
		{"webhooks-mail", "/webhooks", &root, WebhooksPage(WebhooksView{ByMail: true})},
		{"webhook-new", "/webhooks/new", &root, NewWebhookPage(WebhookView{Form: refused})},
		{"webhook", "/webhooks/1", &root, WebhookPage(sampleWebhook("", ""))},
		{"webhook-secret", "/webhooks", &root, WebhookPage(sampleWebhook("whsec_"+strings.Repeat("k3Jd8", 8), "given_up"))},
		{"webhook-refused", "/webhooks/1?state=failed", &root, WebhookPage(broken)},
		{"webhook-delete", "/webhooks/1/delete", &root, ConfirmPage(ConfirmDeleteWebhook(hook))},
		{"webhook-rotate", "/webhooks/1/rotate", &root, ConfirmPage(ConfirmRotateSecret(hook))},
	}
}
