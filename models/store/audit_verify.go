package store

import (
	"context"
	"errors"
	"fmt"
	"math"

	"weir/models"
)

// VerifyAudit checks the whole chain and returns its end. The first entry that
// breaks it is returned as a [BrokenAudit]. expected, when not zero, is an
// earlier position that must still be part of the chain. Entries may be
// appended meanwhile.
func (s *Store) VerifyAudit(ctx context.Context, expected models.AuditHead) (models.AuditHead, error) {
	return s.Read(ctx).verifyAudit(ctx, expected)
}

func (q *Queries) verifyAudit(ctx context.Context, expected models.AuditHead) (models.AuditHead, error) {
	known, err := q.AuditHead()
	if err != nil {
		return models.AuditHead{}, err
	}
	var end models.AuditHead
	after := int64(math.MinInt64) // an entry may have been inserted before the first
	for {
		entries, err := q.auditAfter(after)
		err = errors.Join(err, ctx.Err())
		if err != nil {
			return end, err
		}
		if len(entries) == 0 {
			break
		}
		for i := range entries {
			if err := entries[i].Verify(end, known, expected); err != nil {
				return end, err
			}
			end = models.AuditHead{Number: entries[i].ID, Hash: entries[i].Hash}
		}
		after = end.Number
	}
	if most := max(known.Number, expected.Number); end.Number < most {
		return end, &models.BrokenAudit{Number: end.Number + 1, Reason: fmt.Sprintf("it is missing, with all up to entry %d", most)}
	}
	now, err := q.AuditHead()
	if err == nil && end.Number > now.Number {
		err = &models.BrokenAudit{Number: now.Number + 1, Reason: "it was not written by Weir: the chain ends before it"}
	}
	return end, err
}
