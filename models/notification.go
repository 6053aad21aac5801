package models

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Notification is a message to a user, shown in the portal and sent by e-mail. Kind is
// a dotted word such as request.approved, to which webhooks subscribe.
type Notification struct {
	ID        int64
	UserID    int64
	Kind      string
	Text      Text
	Link      string // path in the portal, such as /projects/5; may be empty
	CreatedAt time.Time
	ReadAt    *time.Time // nil: not yet
	ProjectID *int64     // whose end, or in which a membership ends; kinds period.* and deadline.*

	// Data is sent to webhooks beside the text, as JSON. It is not stored.
	Data any `gorm:"-"`
}

// NotificationPreference is a user's preference for notifications.
type NotificationPreference struct {
	UserID     int64  `gorm:"primaryKey"`
	PortalOnly bool   // no e-mail
	Language   string // of e-mail: en, zh; empty: English
}

// Webhook is a URL to which events are sent.
type Webhook struct {
	ID        int64
	Name      string
	URL       string
	Events    []string `gorm:"serializer:json;not null"` // see Subscribes; empty: all
	Enabled   bool
	Secret    string // sealed
	OldSecret string // sealed; signs beside Secret until OldUntil
	OldUntil  *time.Time
	Version   int64
	CreatedAt time.Time
}

// Subscribes reports whether the webhook gets a kind of notification: its Events
// contain the kind, or a prefix of it as in request.*, or nothing at all.
func (w Webhook) Subscribes(kind string) bool {
	return len(w.Events) == 0 || slices.ContainsFunc(w.Events, func(e string) bool { return Selects(e, kind) })
}

// States of a delivery. A failed one is retried automatically, a given-up one
// only on demand.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryFailed    = "failed"
	DeliveryGivenUp   = "given_up"
)

// Delivery is one message to one receiver: to a webhook, or the e-mail of a
// notification. It is stored in the transaction of its event and sent later.
type Delivery struct {
	ID             int64
	Key            string // idempotency key for the receiver
	WebhookID      *int64
	NotificationID *int64
	Receiver       string // deliveries to one receiver are sent in order
	Kind           string
	Body           string // an Event or a Letter as JSON; empty for the e-mail of a notification
	State          string
	Attempts       int64
	Refused        bool   // the receiver rejects this one: later ones may go first
	Status         int64  // of the last response, HTTP or SMTP; 0: none
	Response       string // beginning of the last response
	Problem        Text   // of the last attempt

	QueuedAt   time.Time  // the retry period begins here
	NextAt     time.Time  // not sent before
	LeaseUntil *time.Time // it is being sent until then
	CreatedAt  time.Time
	FinishedAt *time.Time // delivered or given up
}

// DeliveryView is a delivery with the name of its receiver.
type DeliveryView struct {
	Delivery
	WebhookName string
	UserEmail   string
}

// Event is the body of a webhook's message.
type Event struct {
	ID    string    `json:"id"` // of the delivery
	Type  string    `json:"type"`
	At    time.Time `json:"created_at"`
	Text  string    `json:"text"` // English
	Path  string    `json:"path,omitempty"`
	URL   string    `json:"url,omitempty"` // of Path in the portal
	Users []int64   `json:"users"`         // ids of the notified accounts
	Data  any       `json:"data,omitempty"`
}

// NewDelivery creates the message of a notification to a webhook.
func NewDelivery(w Webhook, n Notification, users []int64, now time.Time) (Delivery, error) {
	d := NewMessage(n, "webhook:"+strconv.FormatInt(w.ID, 10), now)
	d.WebhookID = &w.ID
	if users == nil {
		users = []int64{}
	}
	body, err := json.Marshal(Event{ID: d.Key, Type: n.Kind, At: now, Text: n.Text.String(), Path: n.Link, Users: users, Data: n.Data})
	d.Body = string(body)
	return d, err
}

// NewMessage creates the message of a notification to a receiver, without a body.
func NewMessage(n Notification, receiver string, now time.Time) Delivery {
	return Delivery{Key: newKey(), Receiver: receiver, Kind: n.Kind, State: DeliveryPending, QueuedAt: now, NextAt: now, CreatedAt: now}
}

// newKey is random, so that keys differ also after the database was restored
// from a backup.
func newKey() string {
	var b [16]byte
	rand.Read(b[:]) // never fails; see crypto/rand
	return hex.EncodeToString(b[:])
}

var kindPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$`)

// Check catches programming errors.
func (n Notification) Check() error {
	switch {
	case !kindPattern.MatchString(n.Kind):
		return errors.New("models: " + n.Kind + " is no kind of a notification")
	case n.Text.Empty():
		return errors.New("models: a notification must say something")
	case n.Link != "" && !isLocalPath(n.Link):
		return errors.New("models: a notification's link must be a path in the portal")
	}
	return nil
}
