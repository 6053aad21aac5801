package notifications

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

const origin = "https://weir.example.org"

// world is a service and its sender on a real store, with two people. Its
// clock stands still.
type world struct {
	*testing.T
	store    *store.Store
	clock    *storetest.Clock
	service  *Service
	sender   *Sender
	root     policies.Actor
	ada, ben models.User
	accounts *policies.Accounts
}

func each(t *testing.T, test func(w *world)) {
	storetest.Each(t, func(t *testing.T, s *store.Store) { test(newWorld(t, s)) })
}

func newWorld(t *testing.T, db *store.Store) *world {
	t.Helper()
	key, err := NewKey([]byte("what all servers share"))
	if err != nil {
		t.Fatal(err)
	}
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, store: db, clock: storetest.NewClock(db), accounts: policies.NewAccounts(db, access)}
	w.root = policies.Actor{User: storetest.User(t, db, "root@example.org", true)}
	w.ada, w.ben = storetest.User(t, db, "ada@example.org", false), storetest.User(t, db, "ben@example.org", false)
	w.service = &Service{Store: db, Access: access, Key: key, AllowPrivate: true}
	w.sender = w.newSender()
	return w
}

func (w *world) newSender() *Sender {
	s := NewSender(SenderConfig{Store: w.store, Key: w.service.Key, Origin: origin, Version: "test", AllowPrivate: true,
		Accounts: w.accounts, Logger: slog.New(slog.DiscardHandler)})
	s.jitter = func() float64 { return 0 }
	return s
}

// settle lets a sender do all that is due at the clock's time.
func (w *world) settle(s *Sender) {
	w.Helper()
	for before := -1; ; {
		if err := s.round(w.Context()); err != nil {
			w.Fatal(err)
		}
		s.work.Wait()
		now := 0
		for _, d := range w.deliveries() {
			now += int(d.Attempts)
		}
		if now == before {
			return
		}
		before = now
	}
}

func (w *world) deliveries() []models.DeliveryView {
	w.Helper()
	list, err := w.store.Read(w.Context()).Deliveries(store.DeliveryFilter{}, store.Page{Limit: 200})
	if err != nil {
		w.Fatal(err)
	}
	return list
}

func (w *world) only() models.DeliveryView {
	w.Helper()
	list := w.deliveries()
	if len(list) != 1 {
		w.Fatalf("%d deliveries, want one", len(list))
	}
	return list[0]
}

func (w *world) webhook(url string, events ...string) (models.Webhook, string) {
	w.Helper()
	hook, secret, err := w.service.CreateWebhook(w.Context(), w.root, WebhookInput{Name: "chat", URL: url, Events: events, Enabled: true})
	if err != nil {
		w.Fatal(err)
	}
	return hook, secret
}

func (w *world) tell(kind string, to ...int64) {
	w.Helper()
	w.tellText(kind, models.Say("%s happened", kind), to...)
}

func (w *world) tellText(kind string, text models.Text, to ...int64) {
	w.Helper()
	storetest.InTx(w, w.store, func(q *store.Queries) error {
		return q.Notify(to, models.Notification{Kind: kind, Text: text, Link: "/projects/5", Data: map[string]int{"project": 5}})
	})
}

// message is what a receiver got.
type message struct {
	key, kind, signature string
	body                 []byte
	event                models.Event
}

// receiver is a real HTTP server that answers as it is told.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []message
	answer func(w http.ResponseWriter, r *http.Request)
}

func newReceiver(t testing.TB) *receiver {
	r := &receiver{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	m := message{key: req.Header.Get("Weir-Delivery"), kind: req.Header.Get("Weir-Event"), signature: req.Header.Get("Weir-Signature")}
	m.body, _ = io.ReadAll(req.Body)
	_ = json.Unmarshal(m.body, &m.event) // compared by the tests
	r.mu.Lock()
	r.got = append(r.got, m)
	answer := r.answer
	r.mu.Unlock()
	answer(w, req)
}

func (r *receiver) answers(status int, body string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func (r *receiver) messages() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.got...)
}

func (r *receiver) kinds() string {
	var kinds []string
	for _, m := range r.messages() {
		kinds = append(kinds, m.kind)
	}
	return strings.Join(kinds, " ")
}

// signedBy tells whether one of a message's signatures is of this secret, and
// recent. It is what a receiver does, written for itself.
func signedBy(m message, secret string, now time.Time) bool {
	parts := strings.Split(m.signature, ",")
	seconds, found := strings.CutPrefix(parts[0], "t=")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if !found || err != nil || now.Sub(time.Unix(n, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(seconds))
	mac.Write([]byte("."))
	mac.Write(m.body)
	for _, p := range parts[1:] {
		hexadecimal, found := strings.CutPrefix(p, "v1=")
		sum, err := hex.DecodeString(hexadecimal)
		if found && err == nil && hmac.Equal(sum, mac.Sum(nil)) {
			return true
		}
	}
	return false
}

// soon polls until something is so.
func soon(t testing.TB, what string, so func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !so() {
		select {
		case <-ctx.Done():
			t.Fatal("waited in vain: ", what)
		case <-tick.C:
		}
	}
}
