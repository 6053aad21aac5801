package models

import (
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
)

// DeliveriesTopic changes when there is something to send, or was sent.
const DeliveriesTopic = "deliveries"

// Tell tells people something, when this transaction is committed: it puts the
// notice into their inboxes and, with the same certainty, queues what has to
// be sent: an e-mail to each who wants one, and a message to every webhook
// that wants this kind. n needs Kind and Text, and may have Link and Data.
// Without anybody in to only webhooks are told. Nobody is told twice.
func (q *Queries) Tell(to []int64, n Notice) error {
	if q.topics == nil {
		return errors.New("models: a notice belongs into the transaction of what it tells of")
	}
	if err := n.check(); err != nil {
		return err
	}
	n.CreatedAt = q.Now()
	to = slices.Compact(slices.Sorted(slices.Values(to)))
	list := make([]Notice, len(to))
	for i, user := range to {
		list[i] = n
		list[i].ID, list[i].UserID, list[i].ReadAt = 0, user, nil
		q.Touch("user", user)
	}
	if len(list) > 0 {
		if err := q.db.CreateInBatches(&list, 500).Error; err != nil {
			return err
		}
	}
	mails, err := q.mailsOf(list)
	if err != nil {
		return err
	}
	messages, err := q.messagesOf(n, to)
	if err != nil {
		return err
	}
	return q.Queue(append(mails, messages...))
}

// mailsOf are the e-mails of notices, to who wants them.
func (q *Queries) mailsOf(notices []Notice) (list []Delivery, err error) {
	if !q.mail || len(notices) == 0 {
		return nil, nil
	}
	for part := range slices.Chunk(notices, 500) {
		ids := make([]int64, len(part))
		for i, n := range part {
			ids[i] = n.UserID
		}
		var wanting []int64
		err := q.db.Model(&User{}).Where("id IN ? AND NOT disabled", ids).
			Where("NOT EXISTS (SELECT 1 FROM notice_preferences p WHERE p.user_id = users.id AND p.portal_only)").Pluck("id", &wanting).Error
		if err != nil {
			return nil, err
		}
		for _, n := range part {
			if slices.Contains(wanting, n.UserID) {
				d := newDelivery(n, "user:"+digits(&n.UserID), n.CreatedAt)
				d.NoticeID = &n.ID
				list = append(list, d)
			}
		}
	}
	return list, nil
}

// messagesOf are what webhooks are told. They cannot be deleted from under
// the message.
func (q *Queries) messagesOf(n Notice, to []int64) (list []Delivery, err error) {
	if n.Kind == NoticeTest || n.Kind == NoticeGivenUp {
		return nil, nil
	}
	if err := q.lockRows("SELECT id FROM webhooks WHERE enabled ORDER BY id FOR KEY SHARE"); err != nil {
		return nil, err
	}
	var hooks []Webhook
	if err := q.db.Where("enabled").Order("id").Find(&hooks).Error; err != nil {
		return nil, err
	}
	for _, w := range hooks {
		if !w.Wants(n.Kind) {
			continue
		}
		d, err := NewDelivery(w, n, to, n.CreatedAt)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// Queue writes down what has to be sent.
func (q *Queries) Queue(list []Delivery) error {
	if len(list) == 0 {
		return nil
	}
	q.Touch(DeliveriesTopic)
	return q.db.CreateInBatches(&list, 500).Error
}

// Notices lists a person's notices, newest first.
func (q *Queries) Notices(userID int64, page Page) (list []Notice, err error) {
	db := q.db.Where("user_id = ?", userID)
	if page.After > 0 {
		db = db.Where("id < ?", page.After)
	}
	return list, db.Order("id DESC").Limit(page.limit()).Find(&list).Error
}

// Notice finds one of a person's notices.
func (q *Queries) Notice(userID, id int64) (n Notice, err error) {
	return n, found(q.db.Where("user_id = ? AND id = ?", userID, id).Take(&n).Error, "notice")
}

// NoticeByID finds anybody's notice.
func (q *Queries) NoticeByID(id int64) (n Notice, err error) {
	return n, found(q.db.Take(&n, id).Error, "notice")
}

// CountUnread counts what a person has not read.
func (q *Queries) CountUnread(userID int64) (n int64, err error) {
	return n, q.db.Model(&Notice{}).Where("user_id = ? AND read_at IS NULL", userID).Count(&n).Error
}

// ReadNotices marks a person's notices as read: one, or with id 0 all up to
// upTo, and without that all that there are.
func (q *Queries) ReadNotices(userID, id, upTo int64) error {
	db := q.db.Model(&Notice{}).Where("user_id = ? AND read_at IS NULL", userID)
	if id != 0 {
		db = db.Where("id = ?", id)
	} else if upTo > 0 {
		db = db.Where("id <= ?", upTo)
	}
	res := db.Update("read_at", q.Now())
	if res.RowsAffected > 0 {
		q.Touch("user", userID)
	}
	return res.Error
}

// NoticePreference is how a person wants to be told.
func (q *Queries) NoticePreference(userID int64) (p NoticePreference, err error) {
	err = q.db.Where("user_id = ?", userID).Limit(1).Find(&p).Error
	p.UserID = userID
	return p, err
}

// PutNoticePreference writes how a person wants to be told.
func (q *Queries) PutNoticePreference(p NoticePreference) error {
	return q.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&p).Error
}

// Webhooks lists all webhooks by id.
func (q *Queries) Webhooks() (list []Webhook, err error) {
	return list, q.db.Order("id").Find(&list).Error
}

// Webhook finds a webhook; within a transaction it then stays.
func (q *Queries) Webhook(id int64) (w Webhook, err error) {
	if q.topics != nil {
		if err := q.lockRows("SELECT id FROM webhooks WHERE id = ? FOR NO KEY UPDATE", id); err != nil {
			return w, err
		}
	}
	return w, found(q.db.Take(&w, id).Error, "webhook")
}

// CreateWebhook inserts w and sets its id.
func (q *Queries) CreateWebhook(w *Webhook) error {
	q.Touch(DeliveriesTopic)
	return q.db.Create(w).Error
}

// UpdateWebhook writes w if its version is still w.Version, and counts it up.
func (q *Queries) UpdateWebhook(w *Webhook) error {
	q.Touch(DeliveriesTopic)
	return q.update(w, &w.Version, w.ID, "webhook")
}

// DeleteWebhook removes a webhook and all its deliveries.
func (q *Queries) DeleteWebhook(id int64) error {
	q.Touch(DeliveriesTopic)
	return q.deleted(q.db.Delete(&Webhook{}, id), "webhook")
}

// DeliveryFilter chooses deliveries; what is zero chooses all.
type DeliveryFilter struct {
	WebhookID int64
	State     string
	Mail      bool // e-mail alone
}

// Deliveries lists deliveries, newest first.
func (q *Queries) Deliveries(f DeliveryFilter, page Page) (list []DeliveryView, err error) {
	db := q.deliveryViews()
	if f.WebhookID != 0 {
		db = db.Where("deliveries.webhook_id = ?", f.WebhookID)
	}
	if f.Mail {
		db = db.Where("deliveries.webhook_id IS NULL")
	}
	if f.State != "" {
		db = db.Where("deliveries.state = ?", f.State)
	}
	if page.After > 0 {
		db = db.Where("deliveries.id < ?", page.After)
	}
	return list, db.Order("deliveries.id DESC").Limit(page.limit()).Find(&list).Error
}

// Delivery finds one delivery.
func (q *Queries) Delivery(id int64) (v DeliveryView, err error) {
	return v, found(q.deliveryViews().Where("deliveries.id = ?", id).Take(&v).Error, "delivery")
}

func (q *Queries) deliveryViews() *gorm.DB {
	return q.db.Table("deliveries").Select("deliveries.*, COALESCE(w.name, '') AS webhook_name, COALESCE(u.email, '') AS user_email").
		Joins("LEFT JOIN webhooks w ON w.id = deliveries.webhook_id").
		Joins("LEFT JOIN notices n ON n.id = deliveries.notice_id").Joins("LEFT JOIN users u ON u.id = n.user_id")
}

// insistence is how often a delivery is tried before those after it may go
// first: a receiver that fails at one message is not to lose the others.
const insistence = 8

// DueDeliveries lists what may be sent now, oldest first, at most one for each
// receiver; e-mail only with mail. What is before it in its receiver's line
// holds a delivery back, unless it was refused or tried very often.
func (q *Queries) DueDeliveries(mail bool, limit int) (list []Delivery, err error) {
	now := q.Now()
	db := q.db.Table("deliveries d").Select("d.*").
		Where("d.finished_at IS NULL AND d.next_at <= ? AND (d.lease_until IS NULL OR d.lease_until <= ?)", now, now).
		Where(`NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.receiver = d.receiver AND e.finished_at IS NULL AND e.id < d.id
			AND (e.lease_until > ? OR NOT e.refused AND e.attempts < ? OR e.next_at <= ?))`, now, insistence, now).
		Where("(d.webhook_id IS NOT NULL OR ?)", mail).
		Where("(d.webhook_id IS NULL OR d.webhook_id IN (SELECT id FROM webhooks WHERE enabled))")
	return list, db.Order("d.next_at, d.id").Limit(limit).Find(&list).Error
}

// ClaimDelivery takes a delivery for sending until a moment, and counts the
// attempt; it is false when somebody else has it, or it is done.
func (q *Queries) ClaimDelivery(d *Delivery, until time.Time) (bool, error) {
	res := q.db.Model(&Delivery{}).Where("id = ? AND attempts = ? AND finished_at IS NULL AND (lease_until IS NULL OR lease_until <= ?)",
		d.ID, d.Attempts, q.Now()).Updates(map[string]any{"attempts": d.Attempts + 1, "lease_until": until})
	if res.Error != nil || res.RowsAffected == 0 {
		return false, res.Error
	}
	d.Attempts, d.LeaseUntil = d.Attempts+1, &until
	return true, nil
}

// RecordDelivery writes what came of an attempt, unless another has begun.
func (q *Queries) RecordDelivery(d Delivery) error {
	res := q.db.Model(&Delivery{}).Where("id = ? AND attempts = ? AND finished_at IS NULL", d.ID, d.Attempts).
		Select("state", "refused", "status", "answer", "problem", "next_at", "lease_until", "finished_at").Updates(&d)
	if res.RowsAffected > 0 {
		q.Touch(DeliveriesTopic)
	}
	return res.Error
}

// SendAgain queues a delivery anew that was finished, and hurries one that
// waits for its next attempt. Nothing changes about one that is being sent.
func (q *Queries) SendAgain(id int64) error {
	_, err := q.sendAgain(q.db.Where("id = ? AND (lease_until IS NULL OR lease_until <= ?)", id, q.Now()))
	return err
}

// SendAllAgain queues all anew that a webhook did not take and that were
// given up; it tells how many these are.
func (q *Queries) SendAllAgain(webhook int64) (int64, error) {
	return q.sendAgain(q.db.Where("webhook_id = ? AND state = ?", webhook, DeliveryGivenUp))
}

func (q *Queries) sendAgain(which *gorm.DB) (int64, error) {
	now := q.Now()
	res := which.Model(&Delivery{}).Updates(map[string]any{"state": DeliveryPending, "refused": false, "finished_at": nil, "lease_until": nil,
		"attempts": 0, "queued_at": now, "next_at": now})
	q.Touch(DeliveriesTopic)
	return res.RowsAffected, res.Error
}

// GivenUpSince tells whether a webhook's deliveries other than this one were
// given up since a moment.
func (q *Queries) GivenUpSince(webhook, other int64, since time.Time) (bool, error) {
	var n int64
	err := q.db.Model(&Delivery{}).Where("webhook_id = ? AND id <> ? AND state = ? AND finished_at >= ?", webhook, other, DeliveryGivenUp, since).Count(&n).Error
	return n > 0, err
}

// Administrators are the ids of all platform administrators who can sign in.
func (q *Queries) Administrators() (ids []int64, err error) {
	return ids, q.db.Model(&User{}).Where("admin AND NOT disabled").Order("id").Pluck("id", &ids).Error
}

// PruneNotices forgets what was sent, or given up, before sent, what was read
// before read, and every notice from before old. What is still to be sent
// stays.
func (q *Queries) PruneNotices(sent, read, old time.Time) error {
	if err := q.db.Where("finished_at < ?", sent).Delete(&Delivery{}).Error; err != nil {
		return err
	}
	return q.db.Where("(read_at < ? OR created_at < ?) AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.notice_id = notices.id AND d.finished_at IS NULL)", read, old).
		Delete(&Notice{}).Error
}
