package notifications

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

const (
	maxWebhooks = 50
	maxEvents   = 50
	// Overlap is how long messages are signed with the old secret too.
	Overlap = 24 * time.Hour
)

// WebhookInput describes a webhook, to create or to replace it. Version is the
// one that was read; 0 accepts any.
type WebhookInput struct {
	Name    string   `json:"name" maxLength:"100"`
	URL     string   `json:"url" maxLength:"1000" doc:"payload URL, https://…; http:// only if private addresses are allowed"`
	Events  []string `json:"events,omitempty" maxItems:"50" doc:"notification types, such as request.approved or request.*; empty for all"`
	Enabled bool     `json:"enabled" doc:"deliveries are enabled; while disabled, queued deliveries are kept"`
	Version int64    `json:"-"`
}

func (s *Service) check(in *WebhookInput) error {
	var p models.Problems
	in.Name = models.CheckName("name", in.Name, &p)
	in.URL = strings.TrimSpace(in.URL)
	s.checkURL(in.URL, &p)
	events := []string{}
	for _, e := range in.Events {
		if e = strings.TrimSpace(e); e == "" {
			continue
		}
		if !slices.ContainsFunc(models.NotificationKinds, func(kind string) bool { return models.Selects(e, kind) }) {
			p.Add("events", "%s selects no notification type; use some of %s, or a prefix such as request.*",
				e, strings.Join(models.NotificationKinds, ", "))
			break
		}
		events = append(events, e)
	}
	slices.Sort(events)
	if in.Events = slices.Compact(events); len(in.Events) > maxEvents {
		p.Add("events", "must have at most %d entries; has %d", maxEvents, len(in.Events))
	}
	return p.Err()
}

func (s *Service) checkURL(text string, p *models.Problems) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		p.Add("url", "must not be empty")
		return
	case len(text) > 1000:
		p.Add("url", "must be at most %d characters; has %d", 1000, len(text))
		return
	case err != nil || u.Hostname() == "" || u.User != nil || u.Fragment != "" || (u.Scheme != "https" && u.Scheme != "http"):
		p.Add("url", "must be a URL such as https://example.org/hook, without a user name")
		return
	case u.Scheme == "http" && !s.AllowPrivate:
		p.Add("url", "must start with https://")
		return
	}
	// Host names are checked when they are dialed.
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		if refused, ok := checkAddress(addr, s.AllowPrivate).(refusedAddress); ok {
			*p = append(*p, models.Field{Name: "url", Reason: refused.reason})
		}
	}
}

// Webhooks lists all webhooks.
func (s *Service) Webhooks(ctx context.Context, actor policies.Actor) ([]models.Webhook, error) {
	if err := s.Access.Check(actor, policies.Platform, policies.WebhookRead); err != nil {
		return nil, err
	}
	list, err := s.Store.Read(ctx).Webhooks()
	for i := range list {
		list[i].URL = s.shownURL(actor, list[i])
	}
	return list, err
}

// shownURL is the URL of a webhook, often a secret of its receiver, or for those who may not change it its origin.
func (s *Service) shownURL(actor policies.Actor, w models.Webhook) string {
	if s.Access.Check(actor, policies.Platform, policies.WebhookWrite) == nil {
		return w.URL
	}
	return audited(w).Origin
}

// Webhook finds one webhook.
func (s *Service) Webhook(ctx context.Context, actor policies.Actor, id int64) (w models.Webhook, err error) {
	if err := s.Access.Check(actor, policies.Platform, policies.WebhookRead); err != nil {
		return w, err
	}
	w, err = s.Store.Read(ctx).Webhook(id)
	w.URL = s.shownURL(actor, w)
	return w, err
}

// WebhookForm returns a webhook for a form that changes or deletes it; with id 0,
// an empty one for a form that creates one.
func (s *Service) WebhookForm(ctx context.Context, actor policies.Actor, id int64) (w models.Webhook, err error) {
	if err := s.Access.Check(actor, policies.Platform, policies.WebhookWrite); err != nil || id == 0 {
		return w, err
	}
	return s.Webhook(ctx, actor, id)
}

// CreateWebhook adds a webhook. Its secret is returned this once.
func (s *Service) CreateWebhook(ctx context.Context, actor policies.Actor, in WebhookInput) (w models.Webhook, secret string, err error) {
	secret = newSecret()
	err = s.write(ctx, actor, func(q *store.Queries) error {
		if err := s.check(&in); err != nil {
			return err
		}
		all, err := q.Webhooks()
		if err != nil {
			return err
		}
		if len(all) >= maxWebhooks {
			return models.NoCapacity("", "The maximum of %d webhooks has been reached. Delete one first.", len(all))
		}
		w = models.Webhook{Name: in.Name, URL: in.URL, Events: in.Events, Enabled: in.Enabled,
			Secret: s.Key.Encrypt(secret), Version: 1, CreatedAt: q.Now()}
		if err := q.CreateWebhook(&w); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "create", Object: "webhook", ID: w.ID, After: audited(w)})
	})
	return w, secret, err
}

// UpdateWebhook changes a webhook.
func (s *Service) UpdateWebhook(ctx context.Context, actor policies.Actor, id int64, in WebhookInput) (w models.Webhook, err error) {
	if err := s.Access.Check(actor, policies.Platform, policies.WebhookWrite); err != nil {
		return w, err
	}
	if err := s.check(&in); err != nil {
		return w, err
	}
	return s.change(ctx, actor, id, in.Version, "update", func(w *models.Webhook, _ time.Time) {
		w.Name, w.URL, w.Events, w.Enabled = in.Name, in.URL, in.Events, in.Enabled
	})
}

// RotateSecret creates a new secret for a webhook and returns it once. Messages
// are signed with the old one too, for [Overlap].
func (s *Service) RotateSecret(ctx context.Context, actor policies.Actor, id, version int64) (w models.Webhook, secret string, err error) {
	secret = newSecret()
	w, err = s.change(ctx, actor, id, version, "rotate", func(w *models.Webhook, now time.Time) {
		until := now.Add(Overlap)
		w.OldSecret, w.OldUntil = w.Secret, &until
		if _, err := s.Key.Decrypt(w.OldSecret); err != nil { // encrypted with another key
			w.OldSecret, w.OldUntil = "", nil
		}
		w.Secret = s.Key.Encrypt(secret)
	})
	return w, secret, err
}

// change edits a webhook and records the change in the audit.
func (s *Service) change(ctx context.Context, actor policies.Actor, id, version int64, action string,
	edit func(*models.Webhook, time.Time)) (w models.Webhook, err error) {
	err = s.write(ctx, actor, func(q *store.Queries) error {
		if w, err = q.Webhook(id); err != nil {
			return err
		}
		if err := models.CheckVersion("webhook", version, w.Version); err != nil {
			return err
		}
		before := audited(w)
		edit(&w, q.Now())
		if err := q.UpdateWebhook(&w); err != nil {
			return err
		}
		if w.Enabled && !before.Enabled { // what has waited is tried for as long as what is new
			if err := q.SendWaitingAgain(id); err != nil {
				return err
			}
		}
		return actor.Audit(q, policies.Change{Action: action, Object: "webhook", ID: id, Before: before, After: audited(w)})
	})
	return w, err
}

// DeleteWebhook removes a webhook with its deliveries.
func (s *Service) DeleteWebhook(ctx context.Context, actor policies.Actor, id, version int64) error {
	return s.write(ctx, actor, func(q *store.Queries) error {
		w, err := q.Webhook(id)
		if err != nil {
			return err
		}
		if err := models.CheckVersion("webhook", version, w.Version); err != nil {
			return err
		}
		if err := q.DeleteWebhook(id); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "webhook", ID: id, Before: audited(w)})
	})
}

// TestWebhook sends a test message to a webhook.
func (s *Service) TestWebhook(ctx context.Context, actor policies.Actor, id int64) error {
	return s.write(ctx, actor, func(q *store.Queries) error {
		w, err := q.Webhook(id)
		if err != nil {
			return err
		}
		if !w.Enabled {
			return models.Conflict("This webhook is disabled. Enable it first.")
		}
		test := models.Notification{Kind: models.NotificationTest, Text: models.Say("This is a test message.")}
		d, err := models.NewDelivery(w, test, nil, q.Now())
		if err != nil {
			return err
		}
		return q.Queue([]models.Delivery{d})
	})
}

// Deliveries lists deliveries, newest first.
func (s *Service) Deliveries(ctx context.Context, actor policies.Actor, f store.DeliveryFilter, page store.Page) (
	[]models.DeliveryView, error) {
	if err := s.Access.Check(actor, policies.Platform, policies.WebhookRead); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx).Deliveries(f, page)
}

// Delivery finds one delivery.
func (s *Service) Delivery(ctx context.Context, actor policies.Actor, id int64) (v models.DeliveryView, err error) {
	if err := s.Access.Check(actor, policies.Platform, policies.WebhookRead); err != nil {
		return v, err
	}
	return s.Store.Read(ctx).Delivery(id)
}

// Redeliver queues a delivery again, with the same key, or makes its next attempt
// due now. A delivery in progress is not changed.
func (s *Service) Redeliver(ctx context.Context, actor policies.Actor, id int64) (v models.DeliveryView, err error) {
	err = s.write(ctx, actor, func(q *store.Queries) error {
		if v, err = q.Delivery(id); err != nil {
			return err
		}
		if err := q.SendAgain(id); err != nil {
			return err
		}
		v, err = q.Delivery(id)
		return err
	})
	return v, err
}

// RedeliverAll queues all deliveries of a webhook again that were given up, and
// returns their number.
func (s *Service) RedeliverAll(ctx context.Context, actor policies.Actor, webhook int64) (n int64, err error) {
	err = s.write(ctx, actor, func(q *store.Queries) error {
		if _, err := q.Webhook(webhook); err != nil {
			return err
		}
		n, err = q.SendAllAgain(webhook)
		return err
	})
	return n, err
}

// auditedWebhook is a webhook in the audit. URLs of webhooks often contain
// secrets, so it has only the origin and a hash.
type auditedWebhook struct {
	Name    string     `json:"name"`
	Origin  string     `json:"origin"`
	SHA256  string     `json:"url_sha256"`
	Events  []string   `json:"events"`
	Enabled bool       `json:"enabled"`
	Rotated *time.Time `json:"old_secret_until,omitempty"`
}

func audited(w models.Webhook) auditedWebhook {
	origin := ""
	if u, err := url.Parse(w.URL); err == nil {
		origin = u.Scheme + "://" + u.Host
	}
	sum := sha256.Sum256([]byte(w.URL))
	return auditedWebhook{w.Name, origin, hex.EncodeToString(sum[:6]), w.Events, w.Enabled, w.OldUntil}
}
