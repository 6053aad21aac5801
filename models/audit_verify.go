package models

import (
	"context"
	"errors"
	"fmt"
	"math"
)

// BrokenAudit is the first entry at which the chain of the audit breaks.
type BrokenAudit struct {
	Number int64
	Reason string
}

// Error names the entry.
func (b *BrokenAudit) Error() string {
	return fmt.Sprintf("the audit is broken at entry %d: %s", b.Number, b.Reason)
}

// VerifyAudit checks the whole chain and returns its end. The first entry that
// breaks it is returned as a [BrokenAudit]. expected, when not zero, is an
// earlier position that must still be part of the chain. Entries may be
// appended meanwhile.
func (s *Store) VerifyAudit(ctx context.Context, expected AuditHead) (AuditHead, error) {
	return s.Read(ctx).verifyAudit(ctx, expected)
}

func (q *Queries) verifyAudit(ctx context.Context, expected AuditHead) (AuditHead, error) {
	known, err := q.AuditHead()
	if err != nil {
		return AuditHead{}, err
	}
	var end AuditHead
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
			if err := entries[i].verify(end, known, expected); err != nil {
				return end, err
			}
			end = AuditHead{entries[i].ID, entries[i].Hash}
		}
		after = end.Number
	}
	if most := max(known.Number, expected.Number); end.Number < most {
		return end, &BrokenAudit{end.Number + 1, fmt.Sprintf("it is missing, with all up to entry %d", most)}
	}
	now, err := q.AuditHead()
	if err == nil && end.Number > now.Number {
		err = &BrokenAudit{now.Number + 1, "it was not written by Weir: the chain ends before it"}
	}
	return end, err
}

// verify checks that the entry follows the one before it, and that it is the
// one known or expected at its position.
func (e *AuditEntry) verify(before AuditHead, positions ...AuditHead) error {
	next := before.Number + 1
	switch {
	case e.ID < next:
		return &BrokenAudit{e.ID, "it was not written by Weir: no entry has this number"}
	case e.ID > next:
		return &BrokenAudit{next, fmt.Sprintf("it is missing; the next one is entry %d", e.ID)}
	case e.Hash != e.sum():
		return &BrokenAudit{e.ID, "it is not as it was written"}
	case e.Previous != before.Hash:
		return &BrokenAudit{e.ID, fmt.Sprintf("it does not follow from entry %d: one of the two was replaced", before.Number)}
	}
	for _, p := range positions {
		if p.Number == e.ID && p.Hash != e.Hash {
			return &BrokenAudit{e.ID, "it is another one than in its place before: the entries up to it were written anew"}
		}
	}
	return nil
}
