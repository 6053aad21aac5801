package notifications

import (
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

func TestInbox(t *testing.T) {
	each(t, func(w *world) {
		ctx, ada, ben := w.Context(), policies.Actor{User: w.ada}, policies.Actor{User: w.ben}
		var heard []string
		w.store.OnChange(func(topics []string) { heard = append(heard, topics...) })
		for _, kind := range []string{"one", "two", "three"} {
			w.tell(kind, w.ada.ID)
		}
		if !slices.Contains(heard, "user:2") {
			w.Errorf("the pages of the reader do not hear of it: %v", heard)
		}
		unread := func(actor policies.Actor, want int64) {
			w.Helper()
			if n, err := w.service.Unread(ctx, actor); err != nil || n != want {
				w.Errorf("%d unread, %v; want %d", n, err, want)
			}
		}
		unread(ada, 3)
		unread(ben, 0)
		list, err := w.service.Inbox(ctx, ada, store.Page{Limit: 2})
		if err != nil || len(list) != 2 || list[0].Kind != "three" || list[0].Text.String() != "three happened" || list[0].Link != "/projects/5" {
			w.Fatalf("%+v, %v", list, err)
		}
		if more, err := w.service.Inbox(ctx, ada, store.Page{After: list[1].ID}); err != nil || len(more) != 1 || more[0].Kind != "one" {
			w.Errorf("%+v, %v", more, err)
		}
		if _, err := w.service.Read(ctx, ben, list[0].ID); models.KindOf(err) != models.KindNotFound {
			w.Errorf("somebody else reads it: %v", err)
		}
		for range 2 {
			if n, err := w.service.Read(ctx, ada, list[0].ID); err != nil || n.ReadAt == nil {
				w.Errorf("%+v, %v", n, err)
			}
		}
		unread(ada, 2)
		if err := w.service.ReadAll(ctx, ada, list[1].ID-1); err != nil { // up to what was seen
			w.Fatal(err)
		}
		unread(ada, 1)
		if err := w.service.ReadAll(ctx, ada, 0); err != nil {
			w.Fatal(err)
		}
		unread(ada, 0)
		if _, err := w.service.Inbox(ctx, policies.Actor{}, store.Page{}); models.KindOf(err) != models.KindUnauthenticated {
			w.Errorf("nobody has an inbox: %v", err)
		}
	})
}

func TestPreference(t *testing.T) {
	each(t, func(w *world) {
		ctx, ada := w.Context(), policies.Actor{User: w.ada}
		want := func(p models.NotificationPreference) {
			w.Helper()
			if got, err := w.service.Preference(ctx, ada); err != nil || got != p {
				w.Errorf("%+v, %v; want %+v", got, err, p)
			}
		}
		want(models.NotificationPreference{UserID: w.ada.ID})
		for range 2 {
			if err := w.service.SetPreference(ctx, ada, false, "zh"); err != nil {
				w.Fatal(err)
			}
		}
		want(models.NotificationPreference{UserID: w.ada.ID, PortalOnly: true, Language: "zh"})
		if err := w.service.SetLanguage(ctx, ada, "en"); err != nil {
			w.Fatal(err)
		}
		want(models.NotificationPreference{UserID: w.ada.ID, PortalOnly: true, Language: "en"})
		if err := w.service.SetPreference(ctx, ada, true, "xx"); models.KindOf(err) != models.KindInvalid {
			w.Errorf("got %v", err)
		}
	})
}

func TestTestMail(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"))
	if err := w.service.TestMail(t.Context(), w.root); models.KindOf(err) != models.KindConflict {
		t.Errorf("without a mail server: %v", err)
	}
	w.store.Mail = true
	if err := w.service.TestMail(t.Context(), w.root); err != nil || w.only().UserEmail != "root@example.org" {
		t.Errorf("%v", err)
	}
	if err := w.service.SetPreference(t.Context(), w.root, false, "en"); err != nil {
		t.Fatal(err)
	}
	if err := w.service.TestMail(t.Context(), w.root); models.KindOf(err) != models.KindConflict {
		t.Errorf("without a wish for e-mail: %v", err)
	}
}

// What is over is forgotten, what is still to be sent is not.
func TestPrune(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		w.webhook(r.URL)
		w.store.Mail = true // and nobody sends it
		w.tell("old", w.ada.ID)
		w.settle(w.sender)
		if err := w.service.ReadAll(w.Context(), policies.Actor{User: w.ada}, 0); err != nil {
			w.Fatal(err)
		}
		w.tell("unread", w.ben.ID)
		w.clock.Advance(keepRead + time.Hour)
		w.settle(w.sender)
		left := w.deliveries()
		if len(left) != 3 { // both e-mails, and the second message, which is sent only now
			w.Errorf("%d deliveries are left", len(left))
		}
		w.store.Mail = false
		storetest.InTx(w, w.store, func(q *store.Queries) error {
			for _, d := range left {
				if d.NotificationID != nil {
					d.Delivery.State, d.Delivery.FinishedAt = models.DeliveryGivenUp, &d.CreatedAt
					if err := q.RecordDelivery(d.Delivery); err != nil {
						return err
					}
				}
			}
			return nil
		})
		w.clock.Advance(time.Hour)
		w.settle(w.sender)
		notifications, err := w.service.Inbox(w.Context(), policies.Actor{User: w.ada}, store.Page{})
		if err != nil || len(notifications) != 0 || len(w.deliveries()) != 1 {
			w.Errorf("%d notifications and %d deliveries are left, %v", len(notifications), len(w.deliveries()), err)
		}
		if notifications, err := w.service.Inbox(w.Context(), policies.Actor{User: w.ben}, store.Page{}); err != nil || len(notifications) != 1 {
			w.Errorf("%d unread ones are left, %v", len(notifications), err)
		}
	})
}
