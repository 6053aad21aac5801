package store

import "context"

// LockAudit locks the head of the audit until done is closed.
func (s *Store) LockAudit(ctx context.Context, locked chan<- struct{}, done <-chan struct{}) error {
	return s.InTx(ctx, func(q *Queries) error {
		_, err := q.lockAuditHead()
		close(locked)
		<-done
		return err
	})
}

// Exec executes a statement in the transaction.
func (q *Queries) Exec(sql string) error { return q.db.Exec(sql).Error }
