package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies/notifications"
)

func (a rest) webhooksOperations(s section) {
	register(a, s, route{http.MethodGet, "/webhooks", 200, "list-webhooks", models.Say("List webhooks; requires platform administrator")},
		a.listWebhooks)
	register(a, s, route{http.MethodPost, "/webhooks", 201, "create-webhook",
		models.Say("Create a webhook; the secret is returned only once")}, a.createWebhook)
	register(a, s, route{http.MethodPost, "/webhooks/mail-test", 204, "test-mail", models.Say("Send a test email to yourself")}, a.testMail)
	register(a, s, route{http.MethodGet, "/webhooks/{id}", 200, "get-webhook", models.Say("Get a webhook")}, a.getWebhook)
	register(a, s, route{http.MethodPut, "/webhooks/{id}", 200, "update-webhook", models.Say("Update a webhook")}, a.updateWebhook)
	register(a, s, route{http.MethodDelete, "/webhooks/{id}", 204, "delete-webhook", models.Say("Delete a webhook and its queued deliveries")},
		a.deleteWebhook)
	register(a, s, route{http.MethodPost, "/webhooks/{id}/rotate", 200, "rotate-webhook-secret",
		models.Say("Rotate the secret of a webhook; the new secret is returned only once, and the old one stays valid for 24 hours")}, a.rotateWebhookSecret)
	register(a, s, route{http.MethodPost, "/webhooks/{id}/test", 204, "test-webhook", models.Say("Send a test delivery to a webhook")},
		a.testWebhook)
	register(a, s, route{http.MethodPost, "/webhooks/{id}/redeliver", 200, "redeliver-failed-deliveries",
		models.Say("Redeliver all failed deliveries of a webhook")}, a.redeliverAll)
	register(a, s, route{http.MethodGet, "/deliveries", 200, "list-deliveries", models.Say("List webhook and email deliveries, newest first")},
		a.listDeliveries)
	register(a, s, route{http.MethodGet, "/deliveries/{id}", 200, "get-delivery", models.Say("Get a delivery")}, a.getDelivery)
	register(a, s, route{http.MethodPost, "/deliveries/{id}/redeliver", 200, "redeliver-delivery",
		models.Say("Redeliver a message or email with the same key")}, a.redeliver)
}

// Webhook is a URL that receives notifications.
type Webhook struct {
	ID        int64      `json:"id"`
	Name      string     `json:"name"`
	URL       string     `json:"url"`
	Events    []string   `json:"events" doc:"notification types; empty for all"`
	Enabled   bool       `json:"enabled"`
	Overlap   *time.Time `json:"two_signatures_until,omitempty" doc:"end of validity of the previous secret"`
	CreatedAt time.Time  `json:"created_at"`
}

func (a rest) webhookOf(w models.Webhook) Webhook {
	out := Webhook{ID: w.ID, Name: w.Name, URL: w.URL, Events: append([]string{}, w.Events...), Enabled: w.Enabled,
		CreatedAt: w.CreatedAt.UTC()}
	if w.OldUntil != nil && w.OldUntil.After(a.Store.Now()) {
		out.Overlap = utc(w.OldUntil)
	}
	return out
}

// NewWebhook is a webhook with its secret.
type NewWebhook struct {
	Webhook
	Secret string `json:"secret" doc:"signing secret; returned only once"`
}

func (a rest) listWebhooks(ctx context.Context, in *Paging) (*Response[List[Webhook]], error) {
	all, err := a.Notifications.Webhooks(ctx, actorOf(ctx))
	return listedAll(*in, func(w models.Webhook) int64 { return w.ID }, all, err, a.webhookOf)
}

func (a rest) createWebhook(ctx context.Context, in *Create[notifications.WebhookInput]) (*Created[NewWebhook], error) {
	w, secret, err := a.Notifications.CreateWebhook(ctx, actorOf(ctx), in.Body)
	return created(w.Version, NewWebhook{a.webhookOf(w), secret}, err, "webhooks", w.ID)
}

func (a rest) getWebhook(ctx context.Context, in *ByID) (*Found[Webhook], error) {
	w, err := a.Notifications.Webhook(ctx, actorOf(ctx), in.ID)
	return found(w.Version, a.webhookOf(w), err)
}

func (a rest) updateWebhook(ctx context.Context, in *Update[notifications.WebhookInput]) (*Found[Webhook], error) {
	in.Body.Version = in.version
	w, err := a.Notifications.UpdateWebhook(ctx, actorOf(ctx), in.ID, in.Body)
	return found(w.Version, a.webhookOf(w), err)
}

func (a rest) deleteWebhook(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Notifications.DeleteWebhook(ctx, actorOf(ctx), in.ID, 0)
}

func (a rest) rotateWebhookSecret(ctx context.Context, in *Versioned) (*Found[NewWebhook], error) {
	w, secret, err := a.Notifications.RotateSecret(ctx, actorOf(ctx), in.ID, in.version)
	return found(w.Version, NewWebhook{a.webhookOf(w), secret}, err)
}

func (a rest) testWebhook(ctx context.Context, in *ByID) (*Nothing, error) {
	return nil, a.Notifications.TestWebhook(ctx, actorOf(ctx), in.ID)
}

func (a rest) testMail(ctx context.Context, _ *struct{}) (*Nothing, error) {
	return nil, a.Notifications.TestMail(ctx, actorOf(ctx))
}

// Redelivered is the number of messages to resend.
type Redelivered struct {
	Messages int64 `json:"messages"`
}

func (a rest) redeliverAll(ctx context.Context, in *ByID) (*Response[Redelivered], error) {
	n, err := a.Notifications.RedeliverAll(ctx, actorOf(ctx), in.ID)
	return &Response[Redelivered]{Redelivered{n}}, err
}

// Delivery is one message to a webhook, or one e-mail.
type Delivery struct {
	ID         int64      `json:"id"`
	Key        string     `json:"key" doc:"idempotency key; the same in every attempt"`
	WebhookID  *int64     `json:"webhook_id,omitempty" doc:"webhook ID; absent for an email"`
	To         string     `json:"to" doc:"webhook name or email address"`
	Kind       string     `json:"kind"`
	State      string     `json:"state" enum:"pending,failed,delivered,given_up" doc:"failed: will be retried; given_up: will not be retried"`
	Attempts   int64      `json:"attempts"`
	Status     int64      `json:"status,omitempty" doc:"status code of the last HTTP or SMTP response; absent if none"`
	Response   string     `json:"response,omitempty" doc:"start of the last response body"`
	Problem    string     `json:"problem,omitempty" doc:"error of the last attempt"`
	CreatedAt  time.Time  `json:"created_at"`
	NextAt     *time.Time `json:"next_at,omitempty" doc:"time of the next attempt"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
}

func deliveryOf(v models.DeliveryView) Delivery {
	d := Delivery{ID: v.ID, Key: v.Key, WebhookID: v.WebhookID, To: v.WebhookName, Kind: v.Kind, State: v.State, Attempts: v.Attempts,
		Status:   v.Status,
		Response: v.Response, Problem: v.Problem.String(), CreatedAt: v.CreatedAt.UTC(), FinishedAt: utc(v.FinishedAt)}
	if v.WebhookID == nil {
		d.To = v.UserEmail
	}
	if v.FinishedAt == nil {
		d.NextAt = utc(&v.NextAt)
	}
	return d
}

// DeliveriesQuery chooses deliveries.
type DeliveriesQuery struct {
	Paging
	WebhookID int64  `query:"webhook_id" minimum:"1" doc:"ID of the webhook"`
	State     string `query:"state" enum:"pending,failed,delivered,given_up" doc:"state of the delivery"`
	Mail      bool   `query:"mail" doc:"email deliveries only"`
}

func (a rest) listDeliveries(ctx context.Context, in *DeliveriesQuery) (*Response[List[Delivery]], error) {
	f := store.DeliveryFilter{WebhookID: in.WebhookID, State: in.State, Mail: in.Mail}
	return listed(in.Paging, func(d models.DeliveryView) int64 { return d.ID }, func(p store.Page) ([]models.DeliveryView, error) {
		return a.Notifications.Deliveries(ctx, actorOf(ctx), f, p)
	}, deliveryOf)
}

func (a rest) getDelivery(ctx context.Context, in *ByID) (*Response[Delivery], error) {
	v, err := a.Notifications.Delivery(ctx, actorOf(ctx), in.ID)
	return &Response[Delivery]{deliveryOf(v)}, err
}

func (a rest) redeliver(ctx context.Context, in *ByID) (*Response[Delivery], error) {
	v, err := a.Notifications.Redeliver(ctx, actorOf(ctx), in.ID)
	return &Response[Delivery]{deliveryOf(v)}, err
}
