package notifications

import (
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"weir/models"
	"weir/models/store/storetest"
)

// A mail server and webhooks that never answer, however much waits for them, hold
// up no other webhook; and of the letters no more than the bound are begun.
func TestASlowReceiverHoldsUpNoOther(t *testing.T) {
	each(t, func(w *world) {
		const many = maxMails + 4
		silent, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.Fatal(err)
		}
		w.mails(&post{Listener: silent}, "")
		slow, fast := newReceiver(w), newReceiver(w)
		let := make(chan struct{})
		slow.answer = func(_ http.ResponseWriter, _ *http.Request) { <-let }
		release := sync.OnceFunc(func() { close(let); silent.Close(); w.sender.work.Wait() })
		defer release()
		var people []int64
		for i := range many {
			people = append(people, storetest.User(w, w.store, fmt.Sprintf("p%d@example.org", i), false).ID)
			w.webhook(slow.URL, "request.approved")
		}
		w.webhook(fast.URL, "request.refused")
		w.tell("request.approved", people...)
		w.tell("request.refused")
		if err := w.sender.round(w.Context()); err != nil {
			w.Fatal(err)
		}
		begun := map[string]int{}
		for _, d := range w.deliveries() {
			to := d.Kind
			if d.WebhookID == nil {
				to = "mail"
			}
			begun[to] += int(d.Attempts)
		}
		if begun["mail"] != maxMails || begun["request.approved"] != many || begun["request.refused"] != 1 {
			w.Fatalf("attempts begun: %v", begun)
		}
		soon(w, "the fast one has its message", func() bool { return fast.kinds() == "request.refused" })
		release()
		for _, d := range w.deliveries() {
			if d.WebhookID == nil && d.Attempts > 0 && d.State != models.DeliveryFailed {
				w.Errorf("%+v", d.Delivery)
			}
		}
	})
}
