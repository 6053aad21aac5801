package store

import (
	"context"
	"strings"

	"weir/models"
)

// ChainAudit adds the entries from before the chain was introduced to it. Call
// it before anything is written; it has an effect only once.
func (s *Store) ChainAudit(ctx context.Context) error {
	return s.InTx(ctx, func(q *Queries) error {
		head, err := q.lockAuditHead()
		if err != nil || head.Number > 0 {
			return err
		}
		for {
			entries, err := q.auditAfter(head.Number)
			if err != nil {
				return err
			}
			if len(entries) == 0 {
				break
			}
			for i := range entries {
				entries[i].AppendTo(&head)
			}
			if err := q.setHashes(entries); err != nil {
				return err
			}
		}
		if head.Number == 0 {
			return nil
		}
		return q.moveAuditHead(head)
	})
}

func (q *Queries) setHashes(entries []models.AuditEntry) error {
	var args []any
	for _, e := range entries {
		args = append(args, e.ID, e.Previous, e.Hash)
	}
	rows := strings.TrimPrefix(strings.Repeat(", (CAST(? AS BIGINT), ?, ?)", len(entries)), ", ")
	return q.db.Exec("WITH h (id, previous, hash) AS (VALUES "+rows+
		") UPDATE audit_entries SET previous = h.previous, hash = h.hash FROM h WHERE audit_entries.id = h.id", args...).Error
}
