package notifications

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/models"
)

const (
	maxParallel  = 16               // deliveries that are sent at once, each to another receiver
	attemptLease = 30 * time.Second // longer than any attempt: after it the attempt's sender is gone
	pollPeriod   = 2 * time.Second  // between two looks for what is due
	minBackoff   = 10 * time.Second // before the second attempt
	maxBackoff   = time.Hour        // between two attempts
	// GiveUpAfter is how long a delivery is tried.
	GiveUpAfter  = 24 * time.Hour
	drainTimeout = 3 * time.Second // that what is being sent gets when the server stops
)

// How long what is over is remembered.
const (
	keepSent = 30 * 24 * time.Hour
	keepRead = 90 * 24 * time.Hour
	keepAll  = 366 * 24 * time.Hour
)

// SenderConfig is what a Sender works with.
type SenderConfig struct {
	Store *models.Store
	Key   Key
	// Fence refuses the transactions of a server that does not lead any more.
	Fence        func(*models.Queries) error
	Origin       string // of the portal, for links
	Version      string // of the program
	AllowPrivate bool   // webhooks may go to private addresses
	Mailer       *Mailer
	Logger       *slog.Logger
}

// Sender sends what is queued: at least once each, to one receiver one after
// the other and in order, unless it refuses one.
type Sender struct {
	SenderConfig
	client *http.Client
	wake   chan struct{}
	busy   atomic.Int64
	work   sync.WaitGroup
	jitter func() float64 // 0 to 1
	pruned time.Time
}

// NewSender makes a Sender. Until Run is called nothing is sent.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{SenderConfig: c, client: newClient(c.AllowPrivate), wake: make(chan struct{}, 1), jitter: rand.Float64}
	c.Store.OnChange(func(topics []string) {
		if slices.Contains(topics, models.DeliveriesTopic) || slices.Contains(topics, models.AllTopics) {
			s.Wake()
		}
	})
	return s
}

// Wake makes the Sender look for work at once.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run sends until ctx ends, and returns when nothing is being sent any more.
// One server at a time may run it.
func (s *Sender) Run(ctx context.Context) {
	defer s.client.CloseIdleConnections()
	defer s.work.Wait()
	tick := time.NewTicker(pollPeriod)
	defer tick.Stop()
	for {
		if err := s.round(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, models.ErrFenced) {
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

// round begins to send what is due, as many as may be sent at once.
func (s *Sender) round(ctx context.Context) error {
	if err := s.prune(ctx); err != nil {
		return err
	}
	free := maxParallel - int(s.busy.Load())
	if free <= 0 {
		return nil
	}
	due, err := s.Store.Read(ctx).DueDeliveries(s.Mailer != nil, free)
	if err != nil || len(due) == 0 {
		return err
	}
	var claimed []models.Delivery
	err = s.Store.InTx(ctx, func(q *models.Queries) error {
		claimed = nil
		if err := s.Fence(q); err != nil {
			return err
		}
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
		s.busy.Add(1)
		s.work.Go(func() {
			defer s.Wake() // the next one in this line
			defer s.busy.Add(-1)
			s.deliver(ctx, d)
		})
	}
	return nil
}

// deliver makes one attempt and writes down what came of it. What cannot be
// written down is sent again when the lease is over.
func (s *Sender) deliver(ctx context.Context, d models.Delivery) {
	drainCtx, cancel := contextPlus(ctx, drainTimeout)
	defer cancel()
	o := s.attempt(drainCtx, d)
	models.Failpoint("notification.sent")
	if drainCtx.Err() != nil && !o.done {
		o = outcome{problem: models.Say("The server stopped while sending.")}
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer stop()
	if err := s.record(ctx, d, o); err != nil {
		s.Logger.Warn("a delivery's outcome is not written down; it is sent again", "delivery", d.ID, "err", err)
	}
}

// contextPlus is a context that ends so long after ctx.
func contextPlus(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return out, func() { stop(); cancel() }
}

func (s *Sender) attempt(ctx context.Context, d models.Delivery) outcome {
	if d.WebhookID == nil {
		return s.mail(ctx, d)
	}
	w, err := s.Store.Read(ctx).Webhook(*d.WebhookID)
	if err != nil {
		return failed(models.Say("The message could not be generated: %s", "database"))
	}
	return s.post(ctx, w, d)
}

func (s *Sender) record(ctx context.Context, d models.Delivery, o outcome) error {
	return s.Store.InTx(ctx, func(q *models.Queries) error {
		if err := s.Fence(q); err != nil {
			return err
		}
		after := s.after(d, o, q.Now())
		if err := q.RecordDelivery(after); err != nil || after.State != models.DeliveryGivenUp || after.WebhookID == nil {
			return err
		}
		return tellGivenUp(q, after)
	})
}

// after is a delivery after an attempt.
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

// backoff is how long to wait after the n-th attempt: twice as long each
// time, up to maxBackoff, less up to a quarter by r, which is 0 to 1, so that not
// all who failed together come back together.
func backoff(n int64, r float64) time.Duration {
	d := maxBackoff
	if n < 10 {
		d = min(maxBackoff, minBackoff<<max(0, n-1))
	}
	return d - time.Duration(r*float64(d)/4)
}

// tellGivenUp tells the administrators, once a day for each webhook.
func tellGivenUp(q *models.Queries, d models.Delivery) error {
	told, err := q.GivenUpSince(*d.WebhookID, d.ID, q.Now().Add(-GiveUpAfter))
	if err != nil || told {
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
	return q.Notify(to, models.Notification{Kind: models.NotificationGivenUp, Link: "/webhooks/" + number(w.ID),
		Text: models.Say("A message to the webhook %s could not be delivered for %d hours and was discarded.", w.Name, int(GiveUpAfter/time.Hour))})
}

// prune forgets once an hour what is long over.
func (s *Sender) prune(ctx context.Context) error {
	now := s.Store.Now()
	if now.Sub(s.pruned) < time.Hour {
		return nil
	}
	s.pruned = now
	return s.Store.InTx(ctx, func(q *models.Queries) error {
		if err := s.Fence(q); err != nil {
			return err
		}
		return q.PruneNotifications(now.Add(-keepSent), now.Add(-keepRead), now.Add(-keepAll))
	})
}
