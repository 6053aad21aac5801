package models

import "context"

// StandUnderLock holds the audit's head and does nothing, until done is
// closed.
func (s *Store) StandUnderLock(ctx context.Context, held chan<- struct{}, done <-chan struct{}) error {
	return s.InTx(ctx, func(q *Queries) error {
		_, err := q.lockAuditHead()
		close(held)
		<-done
		return err
	})
}
