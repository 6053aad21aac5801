package store

import (
	"context"
	"errors"
)

// ErrFenced means that another server is the leader by now, and that the write
// of the old one must not be committed.
var ErrFenced = errors.New("another server leads by now")

// Term is an epoch of the leadership of a task, for which a context works.
type Term struct {
	task  string
	epoch int64
	end   context.CancelFunc
}

type termKey struct{}

// AsLeader returns the context for the work of the leader of a task in an epoch. Every
// transaction in this context and its descendants is fenced: it checks the epoch first
// and fails with ErrFenced when it is no longer the newest. The context then ends.
func AsLeader(ctx context.Context, task string, epoch int64) (context.Context, context.CancelFunc) {
	ctx, end := context.WithCancel(ctx)
	return context.WithValue(ctx, termKey{}, Term{task, epoch, end}), end
}

// termOf is the term that a context works for; the zero value fences nothing.
func termOf(ctx context.Context) Term {
	t, _ := ctx.Value(termKey{}).(Term)
	return t
}

// fence fails with ErrFenced in a term of an older epoch. Otherwise the leader cannot
// change before the transaction has ended.
func (q *Queries) fence(t Term) error {
	if t.task == "" {
		return nil
	}
	var l Leader
	if err := q.locking("SHARE").Where("name = ?", t.task).Take(&l).Error; err != nil {
		return err
	}
	if l.Epoch != t.epoch {
		return ErrFenced
	}
	return nil
}
