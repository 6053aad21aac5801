package notifications

import (
	"context"
	"fmt"
	"time"

	"weir/models"
	"weir/models/store"
)

// Run sends until ctx ends, and returns when no attempt is in progress. Only the
// leader may run it.
func (s *Sender) Run(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	defer s.work.Wait()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil {
			s.Logger.Warn("notifications are not sent", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
		case <-tick.C:
		}
	}
}

// round starts to send due deliveries: one for each webhook, and up to maxMails by e-mail.
func (s *Sender) round(ctx context.Context) error {
	if err := s.prune(ctx); err != nil {
		return err
	}
	free := 0
	if s.Mailer != nil {
		free = maxMails - int(s.mails.Load())
	}
	due, err := s.Store.Read(ctx).DueDeliveries(free)
	if err != nil || len(due) == 0 {
		return err
	}
	var claimed []models.Delivery
	err = s.Store.InTx(ctx, func(q *store.Queries) error {
		claimed = nil
		for _, d := range due {
			ok, err := q.ClaimDelivery(&d, q.Now().Add(attemptLease))
			if err != nil {
				return err
			}
			if ok {
				claimed = append(claimed, d)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, d := range claimed {
		var mails int64
		if d.WebhookID == nil {
			mails = 1
		}
		s.mails.Add(mails)
		s.work.Go(func() {
			defer s.Wake() // for the receiver's next delivery
			defer s.mails.Add(-mails)
			s.deliver(ctx, d)
		})
	}
	return nil
}

// deliver makes one attempt and records its outcome. Without a record it is
// repeated after the lease.
func (s *Sender) deliver(ctx context.Context, d models.Delivery) {
	drainCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(drainTimeout, cancel) })()
	o := s.attempt(drainCtx, d)
	models.Failpoint("notification.sent")
	if drainCtx.Err() != nil && !o.done {
		o = outcome{problem: models.Say("The server stopped while sending.")}
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if err := s.record(ctx, d, o); err != nil {
		s.Logger.Warn("the outcome of a delivery is not recorded; it will be repeated", "delivery", d.ID, "err", err)
	}
}

func (s *Sender) attempt(ctx context.Context, d models.Delivery) outcome {
	switch {
	case d.NotificationID != nil:
		return s.mail(ctx, d)
	case d.WebhookID == nil:
		return s.letter(ctx, d)
	}
	w, err := s.Store.Read(ctx).Webhook(*d.WebhookID)
	if err != nil {
		return s.notGenerated(ctx, d, err)
	}
	return s.post(ctx, w, d)
}

func (s *Sender) record(ctx context.Context, d models.Delivery, o outcome) error {
	return s.Store.InTx(ctx, func(q *store.Queries) error {
		after := s.after(d, o, q.Now())
		if err := q.RecordDelivery(after); err != nil || after.State != models.DeliveryGivenUp || after.WebhookID == nil {
			return err
		}
		return notifyGivenUp(q, after)
	})
}

// after is the delivery after an attempt.
func (s *Sender) after(d models.Delivery, o outcome, now time.Time) models.Delivery {
	d.Status, d.Response, d.Problem, d.Refused, d.LeaseUntil = o.status, o.answer, o.problem, o.refused, nil
	next := now.Add(max(backoff(d.Attempts, s.jitter()), o.wait))
	switch {
	case o.done:
		d.State, d.FinishedAt = models.DeliveryDelivered, &now
	case o.final || next.After(d.QueuedAt.Add(GiveUpAfter)):
		d.State, d.FinishedAt = models.DeliveryGivenUp, &now
	default:
		d.State, d.NextAt = models.DeliveryFailed, next
	}
	return d
}

// backoff is the wait after the n-th attempt: exponential up to maxBackoff, less
// a jitter r from 0 to 1 of up to a quarter.
func backoff(n int64, r float64) time.Duration {
	d := min(maxBackoff, minBackoff<<min(max(n-1, 0), 10))
	return d - time.Duration(r*float64(d)/4)
}

// notifyGivenUp notifies the administrators, once a day for each webhook.
func notifyGivenUp(q *store.Queries, d models.Delivery) error {
	notified, err := q.GivenUpSince(*d.WebhookID, d.ID, q.Now().Add(-GiveUpAfter))
	if err != nil || notified {
		return err
	}
	w, err := q.Webhook(*d.WebhookID)
	if err != nil {
		return err
	}
	to, err := q.Administrators()
	if err != nil {
		return err
	}
	return q.Notify(to, models.Notification{Kind: models.NotificationGivenUp, Link: fmt.Sprintf("/webhooks/%d", w.ID),
		Text: models.Say("A message to the webhook %s could not be delivered for %d hours and was discarded.",
			w.Name, int(GiveUpAfter/time.Hour))})
}

// prune deletes old deliveries and notifications, once an hour.
func (s *Sender) prune(ctx context.Context) error {
	now := s.Store.Now()
	if now.Sub(s.pruned) < time.Hour {
		return nil
	}
	s.pruned = now
	return s.Store.InTx(ctx, func(q *store.Queries) error {
		return q.PruneNotifications(now.Add(-keepSent), now.Add(-keepRead), now.Add(-keepAll))
	})
}
