package notifications

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

var errNo = errors.New("no")

// A notice and what has to be sent are written with the change, or not at all.
func TestOutbox(t *testing.T) {
	each(t, func(w *world) {
		w.store.Mail = true
		w.webhook("http://127.0.0.1:1", "request.*")
		w.webhook("http://127.0.0.1:1", "handover.given")
		n := models.Notification{Kind: "request.created", Text: models.Say("Somebody asks.")}
		err := w.store.InTx(w.Context(), func(q *store.Queries) error {
			if err := q.Notify([]int64{w.ada.ID}, n); err != nil {
				return err
			}
			return errNo
		})
		if !errors.Is(err, errNo) || len(w.deliveries()) != 0 {
			w.Fatalf("%v; %d deliveries of what did not happen", err, len(w.deliveries()))
		}
		w.tell("request.created", w.ada.ID, w.ben.ID, w.ada.ID)
		mails, messages := 0, 0
		for _, d := range w.deliveries() {
			switch {
			case d.NotificationID != nil && d.UserEmail != "":
				mails++
			case d.WebhookName == "chat" && strings.Contains(d.Body, `"users":[2,3]`):
				messages++
			}
		}
		if mails != 2 || messages != 1 {
			w.Errorf("%d e-mails and %d messages: %+v", mails, messages, w.deliveries())
		}
		for _, bad := range []models.Notification{{Kind: "Bad kind", Text: n.Text}, {Kind: "a", Text: models.Text{}}, {Kind: "a", Text: n.Text, Link: "//evil"}} {
			if err := w.store.InTx(w.Context(), func(q *store.Queries) error { return q.Notify([]int64{1}, bad) }); err == nil {
				w.Errorf("%+v was told", bad)
			}
		}
		if err := w.store.Read(w.Context()).Notify([]int64{1}, n); err == nil {
			w.Error("a notification was told outside a transaction")
		}
	})
}

// A receiver that is down, then ill, then well gets the message in the end,
// under one key, signed anew each time.
func TestReceiverComesBack(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		r.Config.SetKeepAlivesEnabled(false)
		hook, secret := w.webhook(r.URL + "/hook")
		address := r.Listener.Addr().String()
		r.Close()
		w.tell("request.created", w.ada.ID)
		w.settle(w.sender)
		d := w.only()
		if d.State != models.DeliveryFailed || d.Attempts != 1 || !strings.Contains(d.Problem.String(), "Could not connect to the receiver") || strings.Contains(d.Problem.String(), "/hook") {
			w.Fatalf("down: %+v", d.Delivery)
		}
		if want := w.store.Now().Add(minBackoff); !d.NextAt.Equal(want) {
			w.Errorf("the next attempt is at %s, want %s", d.NextAt, want)
		}
		w.settle(w.sender)
		if got := w.only().Attempts; got != 1 {
			w.Errorf("%d attempts before it is time", got)
		}
		r = newReceiver(w)
		if _, err := w.service.UpdateWebhook(w.Context(), w.root, hook.ID, WebhookInput{Name: "chat", URL: r.URL, Enabled: true}); err != nil {
			w.Fatal(err, address)
		}
		r.answers(500, "out of\x00 order "+strings.Repeat("x", 4000))
		w.clock.Advance(minBackoff)
		w.settle(w.sender)
		if d = w.only(); d.State != models.DeliveryFailed || d.Status != 500 || !strings.HasPrefix(d.Response, "out of order xxx") || len(d.Response) > maxAnswer {
			w.Fatalf("ill: %+v", d.Delivery)
		}
		r.answers(200, "thanks")
		w.clock.Advance(2 * minBackoff)
		w.settle(w.sender)
		if d = w.only(); d.State != models.DeliveryDelivered || d.Attempts != 3 || d.Status != 200 || d.Response != "thanks" || !d.Problem.Empty() || d.FinishedAt == nil {
			w.Fatalf("well: %+v", d.Delivery)
		}
		got := r.messages()
		if len(got) != 2 || got[0].key != d.Key || got[1].key != d.Key || got[0].signature == got[1].signature {
			w.Fatalf("received %+v, want two messages with the key %s", got, d.Key)
		}
		e := got[1].event
		if e.ID != d.Key || e.Type != "request.created" || e.Text != "request.created happened" || e.URL != origin+"/projects/5" || len(e.Users) != 1 || e.Data == nil {
			w.Errorf("the message says %+v", e)
		}
		if !signedBy(got[1], secret, w.store.Now()) || signedBy(got[1], secret+"x", w.store.Now()) || signedBy(got[1], secret, w.store.Now().Add(time.Hour)) {
			w.Errorf("the signature is %s", got[1].signature)
		}
	})
}

func TestRedirectsAreNotFollowedAndSlowOnesNotWaitedFor(t *testing.T) {
	each(t, func(w *world) {
		elsewhere, r := newReceiver(w), newReceiver(w)
		r.answer = func(rw http.ResponseWriter, req *http.Request) {
			http.Redirect(rw, req, elsewhere.URL, http.StatusTemporaryRedirect)
		}
		w.webhook(r.URL)
		w.tell("one")
		w.settle(w.sender)
		if d := w.only(); d.State != models.DeliveryFailed || d.Status != 307 || len(elsewhere.messages()) != 0 {
			w.Errorf("a redirect: %+v, followed %d times", d.Delivery, len(elsewhere.messages()))
		}
		let := make(chan struct{})
		r.mu.Lock()
		r.answer = func(_ http.ResponseWriter, req *http.Request) {
			select {
			case <-let:
			case <-req.Context().Done():
			}
		}
		r.mu.Unlock()
		w.sender.client.Timeout = 50 * time.Millisecond
		w.clock.Advance(time.Hour)
		w.settle(w.sender)
		close(let)
		if d := w.only(); d.State != models.DeliveryFailed || d.Status != 0 || !strings.Contains(d.Problem.String(), "did not respond within") {
			w.Errorf("a slow one: %+v", d.Delivery)
		}
	})
}

// Of an answer without end only the beginning is taken.
func TestEndlessAnswer(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"))
	r := newReceiver(t)
	const much = 64 << 20
	sent := make(chan int, 1)
	r.answer = func(rw http.ResponseWriter, _ *http.Request) {
		n := 0
		for piece := make([]byte, 32<<10); n < much; n += len(piece) {
			if _, err := rw.Write(piece); err != nil {
				break
			}
		}
		sent <- n
	}
	w.webhook(r.URL)
	w.tell("one")
	w.settle(w.sender)
	if d, n := w.only(), <-sent; d.State != models.DeliveryDelivered || n >= much {
		t.Errorf("%s after %d bytes", d.State, n)
	}
}

// What is queued first goes first, and waits for none that the receiver
// refuses, nor for ever for one at which it fails.
func TestOrder(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		w.webhook(r.URL)
		r.answers(503, "")
		w.tell("one")
		w.tell("two")
		w.settle(w.sender)
		w.settle(w.sender)
		if got := r.kinds(); got != "one" {
			w.Fatalf("received %q", got)
		}
		r.answers(204, "")
		w.clock.Advance(minBackoff)
		w.settle(w.sender)
		if got := r.kinds(); got != "one one two" {
			w.Fatalf("received %q", got)
		}
		r.answers(422, "")
		w.tell("three")
		w.settle(w.sender)
		r.answers(204, "")
		w.tell("four")
		w.settle(w.sender)
		if got := r.kinds(); got != "one one two three four" {
			w.Fatalf("received %q", got)
		}
		w.clock.Advance(minBackoff)
		w.settle(w.sender)
		if got := r.kinds(); got != "one one two three four three" {
			w.Fatalf("received %q", got)
		}
		r.mu.Lock()
		r.answer = func(rw http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Weir-Event") == "poison" {
				rw.WriteHeader(500)
			}
		}
		r.mu.Unlock()
		w.tell("poison")
		w.tell("last")
		for range 20 {
			w.settle(w.sender)
			if strings.HasSuffix(r.kinds(), "last") {
				return
			}
			w.clock.Advance(maxBackoff)
		}
		w.Errorf("received %q", r.kinds())
	})
}

// After a day a delivery is given up, the administrators learn of it once,
// and it can be sent again.
func TestGivenUpAndSentAgain(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		hook, _ := w.webhook(r.URL)
		r.answers(500, "")
		w.tell("one")
		w.tell("two")
		for range 60 {
			w.settle(w.sender)
			w.clock.Advance(30 * time.Minute)
		}
		for _, d := range w.deliveries() {
			if d.State != models.DeliveryGivenUp || d.FinishedAt == nil {
				w.Fatalf("after a day: %+v", d.Delivery)
			}
		}
		inbox, err := w.service.Inbox(w.Context(), w.root, store.Page{})
		if err != nil || len(inbox) != 1 || inbox[0].Kind != models.NotificationGivenUp || inbox[0].Link != "/webhooks/1" {
			w.Errorf("the administrator was told %+v, %v", inbox, err)
		}
		r.answers(200, "")
		before := len(r.messages())
		n, err := w.service.RedeliverAll(w.Context(), w.root, hook.ID)
		if err != nil || n != 2 {
			w.Fatalf("%d are sent again, %v", n, err)
		}
		w.settle(w.sender)
		got := r.messages()[before:]
		if len(got) != 2 || got[0].kind != "one" || got[1].kind != "two" {
			w.Fatalf("received %+v", got)
		}
		first := w.deliveries()[1]
		if first.State != models.DeliveryDelivered || first.Key != got[0].key {
			w.Errorf("sent again: %+v", first.Delivery)
		}
		if _, err := w.service.Redeliver(w.Context(), w.root, first.ID); err != nil {
			w.Fatal(err)
		}
		w.settle(w.sender)
		if last := r.messages(); last[len(last)-1].key != first.Key {
			w.Error("what was delivered was not sent again")
		}
	})
}

// Nothing is sent for a webhook that is disabled, and nothing is lost.
func TestDisabledWaits(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		hook, _ := w.webhook(r.URL)
		w.tell("one")
		in := WebhookInput{Name: "chat", URL: r.URL, Version: hook.Version}
		if _, err := w.service.UpdateWebhook(w.Context(), w.root, hook.ID, in); err != nil {
			w.Fatal(err)
		}
		w.tell("two")
		w.settle(w.sender)
		if err := w.service.TestWebhook(w.Context(), w.root, hook.ID); models.KindOf(err) != models.KindConflict {
			w.Errorf("a test of a disabled webhook: %v", err)
		}
		if _, err := w.service.UpdateWebhook(w.Context(), w.root, hook.ID, in); !errors.Is(err, models.ErrStale) {
			w.Errorf("a stale change: %v", err)
		}
		if got := r.kinds(); got != "" {
			w.Fatalf("received %q", got)
		}
		w.clock.Advance(2 * GiveUpAfter)
		in.Enabled, in.Version = true, 0
		if _, err := w.service.UpdateWebhook(w.Context(), w.root, hook.ID, in); err != nil {
			w.Fatal(err)
		}
		if err := w.service.TestWebhook(w.Context(), w.root, hook.ID); err != nil {
			w.Fatal(err)
		}
		r.answers(http.StatusServiceUnavailable, "")
		w.settle(w.sender)
		r.answers(http.StatusNoContent, "")
		w.clock.Advance(time.Minute)
		w.settle(w.sender)
		if got := r.kinds(); got != "one one test" { // what has waited is not given up after its first failure
			w.Errorf("received %q", got)
		}
	})
}

// A server whose lead has gone sends nothing; what it had begun is sent again
// by the next leader, and what it writes down afterwards does not count.
func TestTwoServers(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "postgres"))
	lead := func(holder string) context.Context {
		epoch, err := w.store.Lead(w.Context(), "controller", holder, 10*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := store.AsLeader(w.Context(), "controller", epoch)
		t.Cleanup(end)
		return ctx
	}
	r := newReceiver(t)
	entered, let := make(chan struct{}, 1), make(chan struct{})
	r.answer = func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-let }
	w.webhook(r.URL)
	w.tell("one")

	old, term := w.newSender(), lead("a")
	if err := old.round(term); err != nil {
		t.Fatal(err)
	}
	<-entered
	w.clock.Advance(11 * time.Second)
	next := w.newSender()
	lead("b")
	w.tell("two")
	if err := old.round(term); err != nil && term.Err() == nil {
		t.Fatal(err)
	}
	w.settle(next)
	if got := r.kinds(); got != "one" {
		t.Fatalf("while the first is being sent: %q", got)
	}
	close(let)
	old.work.Wait()
	if d := w.deliveries()[1]; d.State != models.DeliveryPending {
		t.Errorf("who does not lead wrote %+v", d.Delivery)
	}
	r.answers(200, "")
	w.clock.Advance(attemptLease)
	for range 2 {
		if err := old.round(term); err != nil && term.Err() == nil {
			t.Fatal(err)
		}
	}
	w.settle(next)
	got := r.messages()
	if r.kinds() != "one one two" || got[0].key != got[1].key {
		t.Errorf("received %q", r.kinds())
	}
	for _, d := range w.deliveries() {
		if d.State != models.DeliveryDelivered {
			t.Errorf("%+v", d.Delivery)
		}
	}
}

// The outcome of an attempt does not count once the next attempt has begun,
// also where the leader is the same.
func TestALateOutcomeDoesNotCount(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		entered, let := make(chan struct{}, 1), make(chan struct{})
		r.answer = func(http.ResponseWriter, *http.Request) { entered <- struct{}{}; <-let }
		w.webhook(r.URL)
		w.tell("one")
		if err := w.sender.round(w.Context()); err != nil {
			w.Fatal(err)
		}
		<-entered
		r.answers(500, "out of order")
		w.clock.Advance(attemptLease)
		w.settle(w.newSender())
		close(let)
		w.sender.work.Wait()
		if d := w.only(); d.State != models.DeliveryFailed || d.Attempts != 2 || d.Status != 500 {
			w.Errorf("after attempt 2 failed, attempt 1 wrote %+v", d.Delivery)
		}
	})
}

// Run sends what is told, at once, and ends with what it has begun.
func TestRun(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		w.webhook(r.URL)
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); w.sender.Run(ctx) }()
		const n = 30
		for range n {
			w.tell("many", w.ada.ID)
		}
		soon(w, "all are delivered", func() bool {
			for _, d := range w.deliveries() {
				if d.State != models.DeliveryDelivered {
					return false
				}
			}
			return len(w.deliveries()) == n
		})
		stop()
		<-ended
		keys := map[string]bool{}
		for _, m := range r.messages() {
			keys[m.key] = true
		}
		if len(keys) != n || len(r.messages()) != n {
			w.Errorf("%d messages with %d keys, want %d", len(r.messages()), len(keys), n)
		}
	})
}

func TestBackoff(t *testing.T) {
	for n, want := range map[int64]time.Duration{1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 9: 2560 * time.Second, 10: time.Hour, 1000: time.Hour} {
		if got := backoff(n, 0); got != want {
			t.Errorf("after %d attempts %s, want %s", n, got, want)
		}
		if got := backoff(n, 1); got != want-want/4 {
			t.Errorf("after %d attempts at least %s, want %s", n, got, want-want/4)
		}
	}
}

func TestRotation(t *testing.T) {
	each(t, func(w *world) {
		r := newReceiver(w)
		hook, old := w.webhook(r.URL)
		_, fresh, err := w.service.RotateSecret(w.Context(), w.root, hook.ID, hook.Version)
		if err != nil {
			w.Fatal(err)
		}
		w.tell("one")
		w.settle(w.sender)
		w.clock.Advance(Overlap)
		w.tell("two")
		w.settle(w.sender)
		got := r.messages()
		if !signedBy(got[0], old, w.store.Now().Add(-Overlap)) || !signedBy(got[0], fresh, w.store.Now().Add(-Overlap)) {
			w.Errorf("while both are good: %s", got[0].signature)
		}
		if signedBy(got[1], old, w.store.Now()) || !signedBy(got[1], fresh, w.store.Now()) {
			w.Errorf("afterwards: %s", got[1].signature)
		}
		all, err := w.store.Read(w.Context()).Webhooks()
		if err != nil || strings.Contains(all[0].Secret+all[0].OldSecret, old) || strings.Contains(all[0].Secret, fresh) {
			w.Errorf("a secret lies in the database: %+v, %v", all, err)
		}
		entries, err := w.store.Read(w.Context()).Audit(store.AuditFilter{Object: "webhook"}, store.Page{})
		raw, _ := json.Marshal(entries)
		if err != nil || len(entries) != 2 || strings.Contains(string(raw), secretPrefix) {
			w.Errorf("the audit: %s, %v", raw, err)
		}
		other, _ := NewKey([]byte("another"))
		if _, err := secretsOf(other, all[0], w.store.Now()); err == nil {
			w.Error("another key opens the secret")
		}
	})
}

func TestOnlyAdministratorsManage(t *testing.T) {
	w := newWorld(t, storetest.Open(t, "sqlite"))
	hook, _ := w.webhook("http://hooks.example.org/secret")
	ada := policies.Actor{User: w.ada}
	ctx := t.Context()
	_, _, create := w.service.CreateWebhook(ctx, ada, WebhookInput{})
	_, update := w.service.UpdateWebhook(ctx, ada, hook.ID, WebhookInput{})
	_, list := w.service.Webhooks(ctx, ada)
	_, get := w.service.Webhook(ctx, ada, hook.ID)
	_, _, rotate := w.service.RotateSecret(ctx, ada, hook.ID, 0)
	_, deliveries := w.service.Deliveries(ctx, ada, store.DeliveryFilter{}, store.Page{})
	_, delivery := w.service.Delivery(ctx, ada, 1)
	_, again := w.service.Redeliver(ctx, ada, 1)
	_, all := w.service.RedeliverAll(ctx, ada, hook.ID)
	for i, err := range []error{create, update, list, get, rotate, deliveries, delivery, again, all, w.service.DeleteWebhook(ctx, ada, hook.ID, 0),
		w.service.TestWebhook(ctx, ada, hook.ID), w.service.TestMail(ctx, ada)} {
		if models.KindOf(err) != models.KindForbidden || err == nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	auditor := policies.Actor{User: models.User{ID: w.ada.ID, Auditor: true}}
	seen, err := w.service.Webhook(ctx, auditor, hook.ID)
	hooks, err2 := w.service.Webhooks(ctx, auditor)
	if err != nil || err2 != nil || seen.URL != "http://hooks.example.org" || len(hooks) != 1 || hooks[0].URL != seen.URL {
		t.Errorf("an auditor sees %q, %+v, %v, %v", seen.URL, hooks, err, err2)
	}
	if seen, err := w.service.Webhook(ctx, w.root, hook.ID); err != nil || seen.URL != "http://hooks.example.org/secret" {
		t.Errorf("an administrator sees %q, %v", seen.URL, err)
	}
}
