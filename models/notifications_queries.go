package models

import (
	"errors"
	"slices"
	"time"

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
