package requests_test

import (
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/pool/pooltest"
	"weir/pool/requests"
)

// asked counts what a person was told of new requests.
func (h *example) asked(t *testing.T, u models.User) (n int) {
	t.Helper()
	list, err := h.Store.Read(h.Ctx).Notifications(u.ID, store.Page{})
	pooltest.NoError(t, err)
	for _, notification := range list {
		if notification.Kind == "request.asked" {
			n++
		}
	}
	return n
}

// Of a new request those know who decide it, and nobody else: not who asks,
// not who may decide only other kinds.
func TestDecidersAreTold(t *testing.T) {
	eachExample(t, func(t *testing.T, h *example) {
		for i, c := range []struct {
			what             string
			by               models.User
			asked            models.Requested
			root, boss, self int
		}{
			{"a limit", h.Ann, h.limit(60), 0, 1, 0},
			{"a quota", h.Ann, h.quota(300), 1, 1, 0},
			{"a project", h.Eve, models.Requested{Project: &models.ProjectSpec{Name: "speech", Quota: pooltest.Cores(100).Input()}}, 2, 1, 0},
			{"the manager's own wish", h.Boss, h.limit(70), 3, 1, 0}, // nobody else in the project decides it
		} {
			h.ask(t, c.by, c.asked)
			if root, boss, self := h.asked(t, h.Root.User), h.asked(t, h.Boss), h.asked(t, h.Ann); root != c.root || boss != c.boss || self != c.self {
				t.Errorf("%d, %s: the administrator was told %d times, the manager %d, a member %d; want %d, %d, %d", i, c.what, root, boss, self, c.root, c.boss, c.self)
			}
		}
		_, err := h.Submit(h.Ctx, h.Actor(t, h.Ann), requests.RequestInput{Requested: h.quota(400)})
		pooltest.WantError(t, err, models.KindInvalid, "reason")
		if n := h.asked(t, h.Root.User); n != 3 {
			t.Errorf("a refused request was told: %d", n)
		}
	})
}
