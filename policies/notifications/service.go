package notifications

import (
	"context"
	"strconv"

	"weir/models"
	"weir/policies"
)

// Config is what a Service works with.
type Config struct {
	Store        *models.Store
	Access       *policies.Access
	Key          Key
	AllowPrivate bool // webhooks may go to private addresses
}

// Service is the inbox of each person, and what administrators see of what
// goes out.
type Service struct{ Config }

// New makes a Service.
func New(c Config) *Service { return &Service{c} }

// ByMail reports whether e-mail goes out at all.
func (s *Service) ByMail() bool { return s.Store.Mail }

// signedIn refuses an actor who is nobody and so has no inbox.
func signedIn(actor policies.Actor) error {
	if actor.User.ID == 0 {
		return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Sign in to continue.")}
	}
	return nil
}

// Inbox lists the actor's notifications, newest first.
func (s *Service) Inbox(ctx context.Context, actor policies.Actor, page models.Page) ([]models.Notification, error) {
	if err := signedIn(actor); err != nil {
		return nil, err
	}
	return s.Store.Read(ctx).Notifications(actor.User.ID, page)
}

// Unread counts what the actor has not read.
func (s *Service) Unread(ctx context.Context, actor policies.Actor) (int64, error) {
	if err := signedIn(actor); err != nil {
		return 0, err
	}
	return s.Store.Read(ctx).CountUnread(actor.User.ID)
}

// Read marks one of the actor's notifications as read and returns it.
func (s *Service) Read(ctx context.Context, actor policies.Actor, id int64) (n models.Notification, err error) {
	if err := signedIn(actor); err != nil {
		return n, err
	}
	err = s.Access.WriteSelf(ctx, s.Store, actor, func(q *models.Queries) error {
		if n, err = q.Notification(actor.User.ID, id); err != nil || n.ReadAt != nil {
			return err
		}
		now := q.Now()
		n.ReadAt = &now
		return q.ReadNotifications(actor.User.ID, id, 0)
	})
	return n, err
}

// ReadAll marks all of the actor's notifications as read up to the one with the id
// upTo, or with 0 all: what came since the actor looked stays unread.
func (s *Service) ReadAll(ctx context.Context, actor policies.Actor, upTo int64) error {
	if err := signedIn(actor); err != nil {
		return err
	}
	return s.Access.WriteSelf(ctx, s.Store, actor, func(q *models.Queries) error {
		return q.ReadNotifications(actor.User.ID, 0, upTo)
	})
}

// Preference is how the actor wants to be told.
func (s *Service) Preference(ctx context.Context, actor policies.Actor) (models.NotificationPreference, error) {
	if err := signedIn(actor); err != nil {
		return models.NotificationPreference{}, err
	}
	return s.Store.Read(ctx).NotificationPreference(actor.User.ID)
}

// Prefer sets how the actor wants to be told.
func (s *Service) Prefer(ctx context.Context, actor policies.Actor, byMail bool, language string) error {
	if language != "en" && language != "zh" {
		return models.Invalid("language", "must be en or zh")
	}
	return s.prefer(ctx, actor, func(p *models.NotificationPreference) { p.PortalOnly, p.Language = !byMail, language })
}

// Speak notes the language that the actor reads.
func (s *Service) Speak(ctx context.Context, actor policies.Actor, language string) error {
	return s.prefer(ctx, actor, func(p *models.NotificationPreference) { p.Language = language })
}

func (s *Service) prefer(ctx context.Context, actor policies.Actor, change func(*models.NotificationPreference)) error {
	if err := signedIn(actor); err != nil {
		return err
	}
	return s.Access.WriteSelf(ctx, s.Store, actor, func(q *models.Queries) error {
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

// TestMail tells the actor something, by e-mail too: an administrator sees by
// it whether e-mail arrives.
func (s *Service) TestMail(ctx context.Context, actor policies.Actor) error {
	return s.write(ctx, actor, func(q *models.Queries) error {
		if err := signedIn(actor); err != nil {
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
		return q.Notify([]int64{actor.User.ID}, models.Notification{Kind: models.NotificationTest, Text: models.Say("This is a test. Email delivery works."), Link: "/notifications"})
	})
}

// write is a transaction of somebody who may manage webhooks.
func (s *Service) write(ctx context.Context, actor policies.Actor, fn func(*models.Queries) error) error {
	return s.Access.Write(ctx, s.Store, actor, policies.Platform, policies.WebhookWrite, fn)
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
