package notifications

import (
	"context"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// A sender that no longer leads claims nothing, records nothing, makes no links and
// deletes nothing.
func TestAFormerLeaderSendsNothing(t *testing.T) {
	storetest.EachTakeover(t, 5, func(t *testing.T, s *store.Store) func(context.Context) error {
		w := newWorld(t, s)
		w.mails(newPost(w, false), "")
		r := newReceiver(w)
		w.webhook(r.URL)
		w.tell("old")
		w.settle(w.sender)
		w.clock.Advance(keepAll + time.Hour)
		w.tell("one")
		storetest.InTx(t, s, func(q *store.Queries) error {
			return q.QueueLetter(models.LetterPassword, models.Letter{Address: w.ada.Email})
		})
		return func(ctx context.Context) error {
			err := w.sender.round(ctx)
			w.sender.work.Wait()
			return err
		}
	})
}
