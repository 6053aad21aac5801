package e2e

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/models"
)

// again is within how long a server sends what its predecessor was sending
// when it was killed: the lease of a delivery, and some.
const again = 3 * time.Minute

// hook is a real receiver of messages, which keeps what it got.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	keys   []string
	signed []bool
	secret string
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.Server = httptest.NewServer(h)
	t.Cleanup(h.Close)
	return h
}

func (h *hook) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body) // a broken one has no good signature
	at, sum, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Weir-Signature"), "t="), ",v1=")
	h.mu.Lock()
	defer h.mu.Unlock()
	mac := hmac.New(sha256.New, []byte(h.secret))
	mac.Write([]byte(at + "." + string(body)))
	h.keys = append(h.keys, r.Header.Get("Weir-Delivery"))
	h.signed = append(h.signed, sum == hex.EncodeToString(mac.Sum(nil)))
}

func (h *hook) got() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.keys...)
}

// delivery is one message as the API shows it.
type delivery struct {
	ID    int64
	Key   string
	State string
}

// A server that is killed when a message has arrived, and before that is
// written down, leaves it to the next one: it comes again under its key, and
// those that were queued meanwhile come after it.
func TestKilledBetweenSendingAndRecording(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, o options) {
		o.args = append(o.args, "--webhook-allow-private", "true")
		s := newServer(t, o)
		h := newHook(t)
		admin := s.api(s.admin())
		var made struct {
			ID     int64
			Secret string
		}
		admin.must("POST", "/webhooks", map[string]any{"name": "receiver", "url": h.URL, "enabled": true}, &made)
		h.secret = made.Secret
		s.stop()
		s.start("WEIR_FAILPOINT=notification.sent")
		test := fmt.Sprintf("/webhooks/%d/test", made.ID)
		admin.call("POST", test, nil, nil)
		if code := s.wait(); code != -1 {
			t.Fatalf("the server ended with exit code %d and not at the failpoint", code)
		}
		if got := h.got(); len(got) != 1 {
			t.Fatalf("%d messages came before the end", len(got))
		}
		s.start()
		admin.must("POST", test, nil, nil)
		eventually(t, again, func() string {
			for _, d := range list[delivery](admin, "/deliveries") {
				if d.State != models.DeliveryDelivered {
					return "the delivery " + d.Key + " is " + d.State
				}
			}
			return ""
		})
		got := h.got()
		if len(got) != 3 || got[0] != got[1] || got[2] == got[1] {
			t.Errorf("messages came with the keys %v", got)
		}
		for i, good := range h.signed {
			if !good {
				t.Errorf("the signature of message %d is wrong", i)
			}
		}
	})
}
