package files

import (
	"os"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// A download ends soon after its right has ended by time, which is no event.
func TestTransferEndsWithAMembership(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.write(t, w.at("a"), "old")
		c, err := w.Open(ctx, w.acting, w.project, w.at("a"), true)
		if err != nil || !c.Start(ctx, func() {}) {
			t.Fatal(err)
		}
		defer c.Close()
		storetest.InTx(t, w.store, func(q *store.Queries) error {
			m, err := q.Membership(w.project, w.acting.User.ID)
			if err != nil {
				return err
			}
			until := q.Now().Add(time.Minute)
			m.Until = &until
			return q.UpdateMember(&m)
		})
		if w.clock.Advance(recheckAfter); c.Ends(ctx) {
			t.Error("the download ends before the membership")
		}
		if w.clock.Advance(time.Minute); !c.Ends(ctx) || !c.Cut() {
			t.Error("the download goes on after the membership has ended")
		}
	})
}

// A download in many ranges is audited once, another content of the file again.
func TestDownloadsAreAuditedOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		audited := func() (n int) {
			list, err := w.store.Read(t.Context()).Audit(store.AuditFilter{Action: "download"}, store.Page{})
			if err != nil {
				t.Fatal(err)
			}
			return len(list)
		}
		open := func(actor policies.Actor, sends bool) {
			c, err := w.Open(t.Context(), actor, w.project, w.at("a"), sends)
			if err != nil {
				t.Fatal(err)
			}
			c.Close()
		}
		w.write(t, w.at("a"), "old")
		for step, want := range []struct {
			do func()
			n  int
		}{
			{func() { open(w.acting, false) }, 0}, {func() { open(w.acting, true) }, 1}, {func() { open(w.acting, true) }, 1}, {func() { open(w.managing, true) }, 2},
			{func() { w.write(t, w.at("a"), "new"); open(w.acting, true) }, 3}, {func() { w.clock.Advance(auditPeriod); open(w.acting, true) }, 4},
		} {
			if want.do(); audited() != want.n {
				t.Errorf("step %d: %d downloads are audited, want %d", step, audited(), want.n)
			}
		}
	})
}

// A right that is revoked while bytes arrive is gone when the call returns.
func TestRevocationDuringATransfer(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		w.write(t, w.at("a"), "old")
		c, err := w.Open(ctx, w.acting, w.project, w.at("a"), true)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		stopped := make(chan struct{})
		if !c.Start(ctx, func() { close(stopped) }) {
			t.Fatal("the download does not start")
		}
		other, err := w.Open(ctx, w.managing, w.project, w.at("a"), true)
		if err != nil || !other.Start(ctx, func() { t.Error("the manager's download is cut") }) {
			t.Fatal(err)
		}
		defer other.Close()
		body, done := newPausing("new content"), make(chan error, 1)
		go func() {
			_, err := w.Write(ctx, w.acting, w.project, w.at("a"), body, -1, Condition{})
			done <- err
		}()
		<-body.reached
		w.rule(t, w.at("a"), models.AccessRead, models.DownloadDeny)
		select {
		case <-stopped:
		default:
			t.Error("the download goes on")
		}
		if !c.Transfer.Cut() || other.Transfer.Cut() {
			t.Error("the wrong download is cut")
		}
		close(body.proceed)
		wants(t, "write", models.KindForbidden, <-done)
		if content, err := os.ReadFile(w.disk(w.at("a"))); err != nil || string(content) != "old" {
			t.Errorf("%q, %v", content, err)
		}
		w.settled(t, 3)
	})
}
