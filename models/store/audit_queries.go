package store

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"weir/models"
)

// PutAudit appends an entry to the audit, when this transaction is committed.
func (q *Queries) PutAudit(e models.AuditEntry) error {
	if q.topics == nil {
		return errors.New("models: an audit entry belongs into the transaction of its change")
	}
	q.audit = append(q.audit, e)
	return nil
}

// Context is the context of the query.
func (q *Queries) Context() context.Context { return q.db.Statement.Context }

// recordAudit appends the transaction's entries to the chain. It comes late:
// from here to the commit no other transaction can append.
func (q *Queries) recordAudit() error {
	if len(q.audit) == 0 {
		return nil
	}
	head, err := q.lockAuditHead()
	if err != nil {
		return err
	}
	for i := range q.audit {
		q.audit[i].AppendTo(&head)
	}
	if err := q.db.CreateInBatches(&q.audit, 500).Error; err != nil {
		return err
	}
	return q.moveAuditHead(head)
}

// lockAuditHead also limits how long a paused server can block the others: its
// transaction is ended after some seconds.
func (q *Queries) lockAuditHead() (models.AuditHead, error) {
	if !q.postgres {
		return q.AuditHead()
	}
	return q.auditHead(`SELECT number, hash, set_config('idle_in_transaction_session_timeout', '5s', true)
		FROM audit_head WHERE id = 1 FOR NO KEY UPDATE`)
}

// AuditHead is the newest entry's position in the chain; zero without entries.
func (q *Queries) AuditHead() (models.AuditHead, error) {
	return q.auditHead("SELECT number, hash FROM audit_head WHERE id = 1")
}

func (q *Queries) auditHead(sql string) (h models.AuditHead, err error) {
	res := q.db.Raw(sql).Scan(&h)
	if res.Error == nil && res.RowsAffected == 0 {
		return h, errors.New("the head of the audit is missing from the database")
	}
	return h, res.Error
}

func (q *Queries) moveAuditHead(h models.AuditHead) error {
	return q.db.Exec("UPDATE audit_head SET number = ?, hash = ? WHERE id = 1", h.Number, h.Hash).Error
}

// auditAfter lists the entries after a position in the chain.
func (q *Queries) auditAfter(number int64) (entries []models.AuditEntry, err error) {
	return entries, q.db.Where("id > ?", number).Order("id").Limit(500).Find(&entries).Error
}

// AuditFilter selects entries; a zero field matches all.
type AuditFilter struct {
	Actor     string // as in the entries
	Action    string
	Object    string
	ObjectID  int64
	ProjectID int64
	From      time.Time // inclusive
	Until     time.Time // exclusive
}

// Audit lists entries, newest first, after the one with the id page.After (0:
// from the newest).
func (q *Queries) Audit(f AuditFilter, page Page) (entries []models.AuditEntry, err error) {
	if !storable(f.Actor) || !storable(f.Action) || !storable(f.Object) {
		return nil, nil
	}
	db := f.apply(q.db).Order("at DESC, id DESC").Limit(page.limit())
	if page.After > 0 {
		var last models.AuditEntry
		err := q.db.Select("id, at").Take(&last, page.After).Error
		if errors.Is(err, gorm.ErrRecordNotFound) {
			err = models.Invalid("cursor", "is not a valid cursor for this list")
		}
		if err != nil {
			return nil, err
		}
		db = db.Where("(at, id) < (?, ?)", last.At, last.ID)
	}
	return entries, db.Find(&entries).Error
}

func (f AuditFilter) apply(db *gorm.DB) *gorm.DB {
	// gorm skips the zero fields of a struct.
	db = db.Where(&models.AuditEntry{Actor: f.Actor, Object: f.Object, ObjectID: f.ObjectID})
	if f.Action != "" {
		db = db.Where("action IN ?", models.ActionNames(f.Action))
	}
	if f.ProjectID != 0 {
		db = db.Where("project_id = ?", f.ProjectID)
	}
	if !f.From.IsZero() {
		db = db.Where("at >= ?", f.From.UTC())
	}
	if !f.Until.IsZero() {
		db = db.Where("at < ?", f.Until.UTC())
	}
	return db
}
