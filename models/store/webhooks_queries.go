package store

import "weir/models"

// Webhooks lists all webhooks by id.
func (q *Queries) Webhooks() (list []models.Webhook, err error) {
	return list, q.db.Order("id").Find(&list).Error
}

// Webhook finds a webhook, and locks it within a transaction.
func (q *Queries) Webhook(id int64) (w models.Webhook, err error) {
	return w, found(q.locking("NO KEY UPDATE").Take(&w, id).Error, "webhook")
}

// CreateWebhook inserts w and sets its id.
func (q *Queries) CreateWebhook(w *models.Webhook) error {
	q.Touch(DeliveriesTopic)
	return q.db.Create(w).Error
}

// UpdateWebhook writes w if its version is still w.Version, and increments it.
func (q *Queries) UpdateWebhook(w *models.Webhook) error {
	q.Touch(DeliveriesTopic)
	return q.update(w, &w.Version, w.ID, "webhook")
}

// DeleteWebhook removes a webhook and all its deliveries.
func (q *Queries) DeleteWebhook(id int64) error {
	q.Touch(DeliveriesTopic)
	return q.deleted(q.db.Delete(&models.Webhook{}, id), "webhook")
}
