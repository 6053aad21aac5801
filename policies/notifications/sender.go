package notifications

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

const (
	maxMails     = 16               // concurrent e-mails, to one mail server; a webhook has one delivery at a time
	attemptLease = 30 * time.Second // longer than any attempt
	pollPeriod   = 2 * time.Second  // of due deliveries
	minBackoff   = 10 * time.Second // before the second attempt
	maxBackoff   = time.Hour        // between two attempts
	// GiveUpAfter is how long a delivery is retried.
	GiveUpAfter  = 24 * time.Hour
	drainTimeout = 3 * time.Second // for attempts in progress when the server stops
)

// Retention of finished deliveries and of notifications.
const (
	keepSent = 30 * 24 * time.Hour
	keepRead = 90 * 24 * time.Hour
	keepAll  = 366 * 24 * time.Hour
)

// SenderConfig configures a Sender.
type SenderConfig struct {
	Store        *store.Store
	Key          policies.Key
	Origin       string // of the portal, for links
	Version      string // of the program
	AllowPrivate bool   // webhooks may go to private addresses
	Mailer       *Mailer
	Accounts     *policies.Accounts // makes the links of letters
	Logger       *slog.Logger
}

// Sender sends queued deliveries at least once, in order for each receiver. A
// rejected delivery does not block the following ones.
type Sender struct {
	SenderConfig
	client *http.Client
	wake   chan struct{}
	mails  atomic.Int64 // in progress
	work   sync.WaitGroup
	jitter func() float64 // 0 to 1
	pruned time.Time
}

// NewSender returns a Sender; Run starts it.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{SenderConfig: c, client: newClient(c.AllowPrivate), wake: make(chan struct{}, 1), jitter: rand.Float64}
	c.Store.OnChange(func(topics []string) {
		if slices.Contains(topics, store.DeliveriesTopic) || slices.Contains(topics, store.AllTopics) {
			s.Wake()
		}
	})
	return s
}

// Wake polls at once.
func (s *Sender) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// notGenerated is the outcome without a message; err is for the log only.
func (s *Sender) notGenerated(ctx context.Context, d models.Delivery, err error) outcome {
	if ctx.Err() == nil { // nor when another server has become the leader
		s.Logger.WarnContext(ctx, "a message could not be generated", "delivery", d.ID, "err", err)
	}
	return failed(models.Say("The message could not be generated: %s", models.Say("the log of the server contains the cause")))
}
