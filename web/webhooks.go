package web

import (
	"context"
	"strings"

	"weir/models"
)

// WebhooksView lists the webhooks.
type WebhooksView struct {
	Rows   []models.Webhook
	ByMail bool // a mail server is configured
	Mails  []models.DeliveryView
}

// WebhookView is one webhook, or the form for a new one.
type WebhookView struct {
	Webhook    models.Webhook // its ID is 0 for a new one
	Form       Form           // name, url, events, enabled
	Secret     string         // just made; shown this once
	Deliveries []models.DeliveryView
	State      string // of the deliveries shown; empty: all
	Next       string
	Private    bool // plain http is possible
}

// twoSecrets reports whether the old secret also signs.
func (v WebhookView) twoSecrets(ctx context.Context) bool {
	return v.Webhook.OldUntil != nil && v.Webhook.OldUntil.After(From(ctx).Now)
}

// topics are what the webhook's page follows. While it shows a secret or a refused
// form, it must not refetch itself.
func (v WebhookView) topics() []string {
	if v.Secret != "" || v.Form.Failed() {
		return nil
	}
	return []string{"deliveries"}
}

func webhookPath(n int64) string { return "/webhooks/" + number(n) }

// eventList formats the events of a webhook.
func eventList(ctx context.Context, w models.Webhook) string {
	if len(w.Events) == 0 {
		return T(ctx, "all")
	}
	return strings.Join(w.Events, ", ")
}

// deliveryStates are the choices of a list of deliveries.
var deliveryStates = []string{"", models.DeliveryPending, models.DeliveryFailed, models.DeliveryDelivered, models.DeliveryGivenUp}

// deliveryWord is a delivery's state in the page's language.
func deliveryWord(ctx context.Context, state string) string {
	switch state {
	case models.DeliveryPending:
		return T(ctx, "queued")
	case models.DeliveryFailed:
		return T(ctx, "retrying")
	case models.DeliveryDelivered:
		return T(ctx, "delivered")
	case models.DeliveryGivenUp:
		return T(ctx, "failed")
	}
	return T(ctx, "all")
}

func deliveryClass(state string) string {
	switch state {
	case models.DeliveryDelivered:
		return "ok"
	case models.DeliveryFailed:
		return "warn"
	case models.DeliveryGivenUp:
		return "bad"
	}
	return "wait"
}

// ConfirmDeleteWebhook asks for confirmation before a webhook is deleted.
func ConfirmDeleteWebhook(w models.Webhook) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Delete webhook %s?", w.Name),
		Consequences: []models.Text{models.Say("Queued messages are discarded and the delivery history is deleted.")},
		Button:       models.Say("Delete webhook"),
		Action:       webhookPath(w.ID) + "/delete",
		Back:         webhookPath(w.ID), Version: w.Version,
	}
}

// ConfirmRotateSecret asks for confirmation before a webhook gets another secret.
func ConfirmRotateSecret(w models.Webhook) ConfirmView {
	return ConfirmView{
		Title:        models.Say("Rotate the secret of webhook %s?", w.Name),
		Consequences: []models.Text{models.Say("Both secrets sign every message for 24 hours. Update the receiver within that time.")},
		Button:       models.Say("Rotate secret"),
		Action:       webhookPath(w.ID) + "/rotate",
		Back:         webhookPath(w.ID), Version: w.Version,
	}
}
