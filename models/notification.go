package models

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"time"
)

// Notice is something that a person is told: it stands in the portal's inbox
// and goes out by e-mail. Kind is a dotted word such as request.approved, by
// which webhooks choose.
type Notice struct {
	ID        int64
	UserID    int64
	Kind      string
	Text      Text
	Link      string // path in the portal, such as /projects/5; may be empty
	CreatedAt time.Time
	ReadAt    *time.Time // nil: not yet
	ProjectID *int64     // of whose end it tells, or of whose membership; kinds period.* and deadline.*

	// Data is what webhooks are told beside the text: anything that JSON can
	// show. It is not kept with the notice.
	Data any `gorm:"-"`
}

// Kinds of notices that concern the sending itself: no webhook gets them by
// its choice.
const (
	NoticeTest    = "test"
	NoticeGivenUp = "webhook.given-up"
)

// NoticePreference is how a person wants to be told.
type NoticePreference struct {
	UserID     int64  `gorm:"primaryKey"`
	PortalOnly bool   // no e-mail
	Language   string // of e-mail: en, zh; empty: English
}

// Webhook is an address that is told of events.
type Webhook struct {
	ID        int64
	Name      string
	URL       string
	Events    []string `gorm:"serializer:json;not null"` // see Wants; empty: all
	Enabled   bool
	Secret    string // sealed
	OldSecret string // sealed; signs beside Secret until OldUntil
	OldUntil  *time.Time
	Version   int64
	CreatedAt time.Time
}

// Wants tells whether the webhook is to hear of a kind of notice: it names
// that kind, or what it begins with, as in request.*, or nothing at all.
func (w Webhook) Wants(kind string) bool {
	for _, e := range w.Events {
		if prefix, open := strings.CutSuffix(e, "*"); e == kind || open && strings.HasPrefix(kind, prefix) {
			return true
		}
	}
	return len(w.Events) == 0
}

// States of a delivery. One that failed is tried again; one that was given up
// only when somebody says so.
const (
	DeliveryPending   = "pending"
	DeliveryDelivered = "delivered"
	DeliveryFailed    = "failed"
	DeliveryGivenUp   = "given_up"
)

// Delivery is one message to one receiver: to a webhook, or the e-mail of a
// notice. It is written in the transaction of what it tells of, and sent
// later.
type Delivery struct {
	ID        int64
	Key       string // by which the receiver knows it when it comes twice
	WebhookID *int64
	NoticeID  *int64
	Receiver  string // those of one receiver go out in order
	Kind      string
	Body      string // an Event as JSON; empty for e-mail
	State     string
	Attempts  int64
	Refused   bool   // the receiver wants not this one: others may go first
	Status    int64  // of the last answer, of HTTP or SMTP; 0: none
	Answer    string // how it began
	Problem   Text   // what was wrong the last time

	QueuedAt   time.Time  // it is given up so long after this
	NextAt     time.Time  // not before
	LeaseUntil *time.Time // somebody is sending it until then
	CreatedAt  time.Time
	FinishedAt *time.Time // delivered or given up
}

// DeliveryView is a delivery with the name of its receiver.
type DeliveryView struct {
	Delivery
	WebhookName string
	UserEmail   string
}

// Event is what a webhook is told.
type Event struct {
	ID    string    `json:"id"` // of the delivery
	Type  string    `json:"type"`
	At    time.Time `json:"created_at"`
	Text  string    `json:"text"` // English
	Path  string    `json:"path,omitempty"`
	URL   string    `json:"url,omitempty"` // of Path in the portal
	Users []int64   `json:"users"`         // ids of the accounts that were told
	Data  any       `json:"data,omitempty"`
}

// NewDelivery is a message of a notice to a webhook.
func NewDelivery(w Webhook, n Notice, users []int64, now time.Time) (Delivery, error) {
	d := newDelivery(n, "webhook:"+digits(&w.ID), now)
	d.WebhookID = &w.ID
	if users == nil {
		users = []int64{}
	}
	body, err := json.Marshal(Event{ID: d.Key, Type: n.Kind, At: now, Text: n.Text.String(), Path: n.Link, Users: users, Data: n.Data})
	d.Body = string(body)
	return d, err
}

func newDelivery(n Notice, receiver string, now time.Time) Delivery {
	return Delivery{Key: newKey(), Receiver: receiver, Kind: n.Kind, State: DeliveryPending, QueuedAt: now, NextAt: now, CreatedAt: now}
}

// newKey is random, so that it is not taken for an older one after the
// database was restored from a backup.
func newKey() string {
	var b [16]byte
	rand.Read(b[:]) // never fails; see crypto/rand
	return hex.EncodeToString(b[:])
}

var kindPattern = regexp.MustCompile(`^[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*$`)

// KindPattern is what a webhook may name: a kind, or how kinds begin with a
// star after it.
var KindPattern = regexp.MustCompile(`^(\*|[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*(\.\*)?)$`)

// check refuses what only a mistake in the program can ask for.
func (n Notice) check() error {
	switch {
	case !kindPattern.MatchString(n.Kind):
		return errors.New("models: " + n.Kind + " is no kind of a notice")
	case n.Text.Empty():
		return errors.New("models: a notice must say something")
	case n.Link != "" && (!strings.HasPrefix(n.Link, "/") || strings.HasPrefix(n.Link, "//") || strings.ContainsAny(n.Link, "\\\r\n")):
		return errors.New("models: a notice's link must be a path in the portal")
	}
	return nil
}
