package notifications

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Service manages notifications, webhooks and their deliveries.
type Service struct {
	Store        *store.Store
	Access       *policies.Access
	Key          policies.Key
	AllowPrivate bool // webhooks may go to private addresses
}

// ByMail reports whether a mail server is configured.
func (s *Service) ByMail() bool { return s.Store.Mail }

// Inbox lists the actor's notifications, newest first.
func (s *Service) Inbox(ctx context.Context, actor policies.Actor, page store.Page) ([]models.Notification, error) {
	if err := actor.CheckUser(); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx).Notifications(actor.User.ID, page)
}

// Unread counts the actor's unread notifications.
func (s *Service) Unread(ctx context.Context, actor policies.Actor) (int64, error) {
	if err := actor.CheckUser(); err != nil {
		return 0, err
	}
	return s.Store.Read(ctx).CountUnread(actor.User.ID)
}

// Read marks one of the actor's notifications as read and returns it.
func (s *Service) Read(ctx context.Context, actor policies.Actor, id int64) (n models.Notification, err error) {
	err = s.Access.WriteSelf(ctx, s.Store, actor, func(q *store.Queries) error {
		if n, err = q.Notification(actor.User.ID, id); err != nil || n.ReadAt != nil {
			return err
		}
		now := q.Now()
		n.ReadAt = &now
		return q.ReadNotifications(actor.User.ID, id, 0)
	})
	return n, err
}

// ReadAll marks the actor's notifications as read up to the one with the id upTo;
// 0 marks all.
func (s *Service) ReadAll(ctx context.Context, actor policies.Actor, upTo int64) error {
	return s.Access.WriteSelf(ctx, s.Store, actor, func(q *store.Queries) error {
		return q.ReadNotifications(actor.User.ID, 0, upTo)
	})
}

// Preference is the actor's preference for notifications.
func (s *Service) Preference(ctx context.Context, actor policies.Actor) (models.NotificationPreference, error) {
	if err := actor.CheckUser(); err != nil {
		return models.NotificationPreference{}, err
	}
	return s.Store.Read(ctx).NotificationPreference(actor.User.ID)
}

// SetPreference sets the actor's preference for notifications.
func (s *Service) SetPreference(ctx context.Context, actor policies.Actor, byMail bool, language string) error {
	if language != "en" && language != "zh" {
		return models.Invalid("language", "must be en or zh")
	}
	return s.updatePreference(ctx, actor, func(p *models.NotificationPreference) { p.PortalOnly, p.Language = !byMail, language })
}

// SetLanguage records the actor's language.
func (s *Service) SetLanguage(ctx context.Context, actor policies.Actor, language string) error {
	return s.updatePreference(ctx, actor, func(p *models.NotificationPreference) { p.Language = language })
}

func (s *Service) updatePreference(ctx context.Context, actor policies.Actor, change func(*models.NotificationPreference)) error {
	return s.Access.WriteSelf(ctx, s.Store, actor, func(q *store.Queries) error {
		p, err := q.NotificationPreference(actor.User.ID)
		if err != nil {
			return err
		}
		before := p
		if change(&p); p == before {
			return nil
		}
		q.Touch("user", actor.User.ID)
		return q.PutNotificationPreference(p)
	})
}

// TestMail sends the actor a test notification by email.
func (s *Service) TestMail(ctx context.Context, actor policies.Actor) error {
	return s.write(ctx, actor, func(q *store.Queries) error {
		if err := actor.CheckUser(); err != nil {
			return err
		}
		if !s.Store.Mail {
			return models.Conflict("No mail server is configured. Start Weir with --smtp-url.")
		}
		p, err := q.NotificationPreference(actor.User.ID)
		if err != nil {
			return err
		}
		if p.PortalOnly {
			return models.Conflict("Email is turned off in your account. Turn it on first.")
		}
		return q.Notify([]int64{actor.User.ID}, models.Notification{Kind: models.NotificationTest,
			Text: models.Say("This is a test. Email delivery works."), Link: "/notifications"})
	})
}

// write runs fn in a transaction of an actor with the right to manage webhooks.
func (s *Service) write(ctx context.Context, actor policies.Actor, fn func(*store.Queries) error) error {
	return s.Access.Write(ctx, s.Store, actor, policies.Platform, policies.WebhookWrite, fn)
}
