package store

import (
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	"gorm.io/gorm/clause"

	"weir/models"
)

// DeliveriesTopic changes with every delivery that is queued or sent.
const DeliveriesTopic = "deliveries"

// Notify notifies users as part of this transaction: it stores n for each of them
// and queues its deliveries, an e-mail to each user who has it enabled and a message
// to every webhook that is subscribed to the kind. n needs Kind and Text, and
// may have Link and Data. Without users only webhooks are notified. Duplicate
// ids are ignored.
func (q *Queries) Notify(to []int64, n models.Notification) error {
	if q.topics == nil {
		return errors.New("models: a notification belongs into the transaction of what it tells of")
	}
	if err := n.Check(); err != nil {
		return err
	}
	n.CreatedAt = q.Now()
	to, err := q.people(to)
	if err != nil {
		return err
	}
	q.notified = append(q.notified, notified{n.Kind, n.Text, n.Link, to})
	list := make([]models.Notification, len(to))
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

// people returns those of the users who are no service accounts, once each.
func (q *Queries) people(users []int64) (ids []int64, err error) {
	users = slices.Compact(slices.Sorted(slices.Values(users)))
	for part := range slices.Chunk(users, 500) {
		var services []int64
		if err := q.db.Model(&models.User{}).Where("id IN ? AND email LIKE ?", part, models.ServiceAccountPrefix+"%").Pluck("id",
			&services).Error; err != nil {
			return nil, err
		}
		ids = append(ids, slices.DeleteFunc(part, func(id int64) bool { return slices.Contains(services, id) })...)
	}
	return ids, nil
}

// mailsOf returns the e-mails of notifications, to users with e-mail enabled.
func (q *Queries) mailsOf(notifications []models.Notification) (list []models.Delivery, err error) {
	if !q.mail || len(notifications) == 0 {
		return nil, nil
	}
	for part := range slices.Chunk(notifications, 500) {
		ids := models.Map(part, func(n models.Notification) int64 { return n.UserID })
		var subscribed []int64
		err := q.db.Model(&models.User{}).Where("id IN ? AND NOT disabled", ids).
			Where("NOT EXISTS (SELECT 1 FROM notification_preferences p WHERE p.user_id = users.id AND p.portal_only)").Pluck("id",
			&subscribed).Error
		if err != nil {
			return nil, err
		}
		for _, n := range part {
			if slices.Contains(subscribed, n.UserID) {
				d := models.NewMessage(n, "user:"+strconv.FormatInt(n.UserID, 10), n.CreatedAt)
				d.NotificationID = &n.ID
				list = append(list, d)
			}
		}
	}
	return list, nil
}

// messagesOf returns the messages to webhooks, and locks these against deletion.
func (q *Queries) messagesOf(n models.Notification, to []int64) (list []models.Delivery, err error) {
	if n.Kind == models.NotificationTest || n.Kind == models.NotificationGivenUp {
		return nil, nil
	}
	var hooks []models.Webhook
	if err := q.locking("KEY SHARE").Where("enabled").Order("id").Find(&hooks).Error; err != nil {
		return nil, err
	}
	for _, w := range hooks {
		if !w.Subscribes(n.Kind) {
			continue
		}
		d, err := models.NewDelivery(w, n, to, n.CreatedAt)
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// Queue inserts deliveries.
func (q *Queries) Queue(list []models.Delivery) error {
	if len(list) == 0 {
		return nil
	}
	q.Touch(DeliveriesTopic)
	return q.db.CreateInBatches(&list, 500).Error
}

// Notifications lists a user's notifications, newest first.
func (q *Queries) Notifications(userID int64, page Page) (list []models.Notification, err error) {
	return list, page.newest(q.db.Where("user_id = ?", userID), "id").Find(&list).Error
}

// Notification finds one of a user's notifications.
func (q *Queries) Notification(userID, id int64) (n models.Notification, err error) {
	return n, found(q.db.Where("user_id = ? AND id = ?", userID, id).Take(&n).Error, "notification")
}

// NotificationByID finds a notification of any user.
func (q *Queries) NotificationByID(id int64) (n models.Notification, err error) {
	return n, found(q.db.Take(&n, id).Error, "notification")
}

// CountUnread counts a user's unread notifications.
func (q *Queries) CountUnread(userID int64) (n int64, err error) {
	return n, q.db.Model(&models.Notification{}).Where("user_id = ? AND read_at IS NULL", userID).Count(&n).Error
}

// ReadNotifications marks a user's notifications as read: the one with the id; with id
// 0 all up to upTo; with both 0 all of them.
func (q *Queries) ReadNotifications(userID, id, upTo int64) error {
	db := q.db.Model(&models.Notification{}).Where("user_id = ? AND read_at IS NULL", userID)
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

// NotificationPreference returns the preference of a user, or the default.
func (q *Queries) NotificationPreference(userID int64) (p models.NotificationPreference, err error) {
	err = q.db.Where("user_id = ?", userID).Limit(1).Find(&p).Error
	p.UserID = userID
	return p, err
}

// PutNotificationPreference creates or replaces the preference of a user.
func (q *Queries) PutNotificationPreference(p models.NotificationPreference) error {
	return q.db.Clauses(clause.OnConflict{UpdateAll: true}).Create(&p).Error
}

// Administrators lists the ids of all enabled platform administrators.
func (q *Queries) Administrators() (ids []int64, err error) {
	return ids, q.db.Model(&models.User{}).Where("admin AND NOT disabled").Order("id").Pluck("id", &ids).Error
}

// PruneNotifications deletes deliveries that were finished before sent, notifications
// that were read before read, and all notifications from before old, except
// those that are still to be sent.
func (q *Queries) PruneNotifications(sent, read, old time.Time) error {
	if err := q.db.Where("finished_at < ?", sent).Delete(&models.Delivery{}).Error; err != nil {
		return err
	}
	return q.db.Where("(read_at < ? OR created_at < ?) AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.notification_id = notifications.id AND d.finished_at IS NULL)", read, old).
		Delete(&models.Notification{}).Error
}

// CountNotified returns of how many events this process has notified, by the kind of the
// notification: each counts once, whoever was notified.
func (s *Store) CountNotified() map[string]int64 {
	s.notified.mu.Lock()
	defer s.notified.mu.Unlock()
	return maps.Clone(s.notified.byKind)
}
