package notifications

import (
	"context"
	"net/http"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// Messages to one receiver, which go one after the other: each is claimed,
// sent and written down.
func BenchmarkSend(b *testing.B) {
	for _, dialect := range []string{"sqlite", "postgres"} {
		b.Run(dialect, func(b *testing.B) {
			db := storetest.Open(b, dialect)
			key, err := NewKey([]byte("shared"))
			if err != nil {
				b.Fatal(err)
			}
			r := newReceiver(b)
			r.answer = func(http.ResponseWriter, *http.Request) {}
			hook := models.Webhook{Name: "x", URL: r.URL, Enabled: true, Secret: key.Encrypt(newSecret()), Version: 1, CreatedAt: db.Now()}
			storetest.InTx(b, db, func(q *store.Queries) error { return q.CreateWebhook(&hook) })
			storetest.InTx(b, db, func(q *store.Queries) error {
				for range b.N {
					if err := q.Notify(nil, models.Notification{Kind: "bench", Text: models.Say("One of many.")}); err != nil {
						return err
					}
				}
				return nil
			})
			s := NewSender(SenderConfig{Store: db, Key: key, AllowPrivate: true})
			ctx, stop := context.WithTimeout(b.Context(), time.Minute)
			defer stop()
			b.ResetTimer()
			for len(r.messages()) < b.N && ctx.Err() == nil {
				if err := s.round(ctx); err != nil {
					b.Fatal(err)
				}
				s.work.Wait()
			}
		})
	}
}
