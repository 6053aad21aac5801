package store

import (
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// DeliveryFilter selects deliveries; a zero field matches all.
type DeliveryFilter struct {
	WebhookID int64
	State     string
	Mail      bool // e-mail only
}

// Deliveries lists deliveries, newest first.
func (q *Queries) Deliveries(f DeliveryFilter, page Page) (list []models.DeliveryView, err error) {
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
	return list, page.newest(db, "deliveries.id").Find(&list).Error
}

// Delivery finds one delivery.
func (q *Queries) Delivery(id int64) (v models.DeliveryView, err error) {
	return v, found(q.deliveryViews().Where("deliveries.id = ?", id).Take(&v).Error, "delivery")
}

func (q *Queries) deliveryViews() *gorm.DB {
	return q.db.Table("deliveries").Select("deliveries.*, COALESCE(w.name, '') AS webhook_name, COALESCE(u.email, CASE WHEN deliveries.webhook_id IS NULL THEN SUBSTR(deliveries.receiver, 9) ELSE '' END) AS user_email").
		Joins("LEFT JOIN webhooks w ON w.id = deliveries.webhook_id").
		Joins("LEFT JOIN notifications n ON n.id = deliveries.notification_id").Joins("LEFT JOIN users u ON u.id = n.user_id")
}

// maxBlockingAttempts is how often a delivery is tried before later ones to the
// same receiver may go first: one bad message must not block the others.
const maxBlockingAttempts = 8

// DueDeliveries lists what may be sent now, oldest first, at most one for each
// receiver: to every enabled webhook, and up to mails by e-mail.
func (q *Queries) DueDeliveries(mails int) (list []models.Delivery, err error) {
	err = q.due().Where("d.webhook_id IN (SELECT id FROM webhooks WHERE enabled)").Find(&list).Error
	if err != nil || mails <= 0 {
		return list, err
	}
	var byMail []models.Delivery
	err = q.due().Where("d.webhook_id IS NULL").Limit(mails).Find(&byMail).Error
	return append(list, byMail...), err
}

// due selects the due deliveries, oldest first. An earlier one to the same receiver
// blocks a later one, unless it was refused or tried very often.
func (q *Queries) due() *gorm.DB {
	now := q.Now()
	return q.db.Table("deliveries d").Select("d.*").
		Where("d.finished_at IS NULL AND d.next_at <= ? AND (d.lease_until IS NULL OR d.lease_until <= ?)", now, now).
		Where(`NOT EXISTS (SELECT 1 FROM deliveries e WHERE e.receiver = d.receiver AND e.finished_at IS NULL AND e.id < d.id
			AND (e.lease_until > ? OR NOT e.refused AND e.attempts < ? OR e.next_at <= ?))`, now, maxBlockingAttempts, now).
		Order("d.next_at, d.id")
}

// ClaimDelivery leases a delivery for sending until a time, and counts the
// attempt; it returns false when another sender has it or it is finished.
func (q *Queries) ClaimDelivery(d *models.Delivery, until time.Time) (bool, error) {
	res := q.db.Model(&models.Delivery{}).Where("id = ? AND attempts = ? AND finished_at IS NULL AND (lease_until IS NULL OR lease_until <= ?)",
		d.ID, d.Attempts, q.Now()).Updates(map[string]any{"attempts": d.Attempts + 1, "lease_until": until})
	if res.Error != nil || res.RowsAffected == 0 {
		return false, res.Error
	}
	d.Attempts, d.LeaseUntil = d.Attempts+1, &until
	return true, nil
}

// RecordDelivery writes the outcome of an attempt, unless another has begun.
func (q *Queries) RecordDelivery(d models.Delivery) error {
	res := q.db.Model(&models.Delivery{}).Where("id = ? AND attempts = ? AND finished_at IS NULL", d.ID, d.Attempts).
		Select("state", "refused", "status", "response", "problem", "next_at", "lease_until", "finished_at").Updates(&d)
	if res.RowsAffected > 0 {
		q.Touch(DeliveriesTopic)
	}
	return res.Error
}

// SendAgain queues a finished delivery again, and makes a waiting one due now.
// One that is being sent is not changed.
func (q *Queries) SendAgain(id int64) error {
	_, err := q.sendAgain(q.db.Where("id = ? AND (lease_until IS NULL OR lease_until <= ?)", id, q.Now()))
	return err
}

// SendAllAgain queues all given-up deliveries of a webhook again, and returns
// their number.
func (q *Queries) SendAllAgain(webhook int64) (int64, error) {
	return q.sendAgain(q.db.Where("webhook_id = ? AND state = ?", webhook, models.DeliveryGivenUp))
}

// SendWaitingAgain makes the deliveries of a webhook that are not finished due now, as if they were new.
func (q *Queries) SendWaitingAgain(webhook int64) error {
	_, err := q.sendAgain(q.db.Where("webhook_id = ? AND finished_at IS NULL AND (lease_until IS NULL OR lease_until <= ?)", webhook, q.Now()))
	return err
}

func (q *Queries) sendAgain(which *gorm.DB) (int64, error) {
	now := q.Now()
	res := which.Model(&models.Delivery{}).Updates(map[string]any{"state": models.DeliveryPending, "refused": false, "finished_at": nil,
		"lease_until": nil,
		"attempts":    0, "queued_at": now, "next_at": now})
	q.Touch(DeliveriesTopic)
	return res.RowsAffected, res.Error
}

// GivenUpSince reports whether another delivery of a webhook was given up since
// a time.
func (q *Queries) GivenUpSince(webhook, other int64, since time.Time) (bool, error) {
	return exists(q.db.Model(&models.Delivery{}).Where("webhook_id = ? AND id <> ? AND state = ? AND finished_at >= ?", webhook, other,
		models.DeliveryGivenUp, since))
}
