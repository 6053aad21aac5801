package notifications

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// mail sends a delivery by email, with the current preferences of its receiver.
func (s *Sender) mail(ctx context.Context, d models.Delivery) outcome {
	q := s.Store.Read(ctx)
	n, err1 := q.NotificationByID(*d.NotificationID)
	reader, err2 := q.User(n.UserID)
	p, err3 := q.NotificationPreference(n.UserID)
	if err := errors.Join(err1, err2, err3); err != nil {
		return s.notGenerated(ctx, d, err)
	}
	if reader.Disabled || p.PortalOnly {
		return outcome{final: true, problem: models.Say("This person no longer receives email.")}
	}
	footer := models.Say("You received this email because you have a Weir account. Change your notification settings at %s",
		s.Origin+"/account")
	return s.sendMail(ctx, d, policies.Message{To: reader.Email, Text: n.Text, Path: n.Link, Language: p.Language,
		Zone: models.TimeZone(reader.TimeZone)}, footer)
}

// letter sends a letter, whose link is new in every attempt.
func (s *Sender) letter(ctx context.Context, d models.Delivery) outcome {
	var l models.Letter
	if err := json.Unmarshal([]byte(d.Body), &l); err != nil {
		o := s.notGenerated(ctx, d, err)
		o.final = true
		return o
	}
	var m policies.Message
	err := s.Store.InTx(ctx, func(q *store.Queries) (err error) {
		m, err = s.Accounts.WriteLetter(q, l)
		return err
	})
	if e, ok := errors.AsType[*models.Error](err); ok && e.Kind != models.KindInternal {
		return outcome{final: true, problem: e.Message}
	} else if err != nil {
		return s.notGenerated(ctx, d, err)
	}
	return s.sendMail(ctx, d, m, models.Say("You received this email because someone entered this address at %s.", s.Origin))
}

func (s *Sender) sendMail(ctx context.Context, d models.Delivery, m policies.Message, footer models.Text) outcome {
	text := m.Text.InZone(m.Language, cmp.Or(m.Zone, time.UTC))
	body := text + "\n"
	if m.Path != "" {
		body += "\n" + s.Origin + m.Path + "\n"
	}
	body += "\n-- \n" + footer.In(m.Language) + "\n"
	msg := s.Mailer.message(m.To, "Weir: "+text, body)
	msg.SetMessageIDWithValue(d.Key + "@" + s.domain()) // the same for every attempt
	msg.SetDateWithValue(d.CreatedAt.UTC())
	return s.Mailer.send(ctx, s.domain(), msg)
}

// domain is the portal's host name.
func (s *Sender) domain() string {
	if u, err := url.Parse(s.Origin); err == nil && u.Hostname() != "" && net.ParseIP(u.Hostname()) == nil {
		return u.Hostname()
	}
	return "localhost"
}
