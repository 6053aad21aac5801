package files

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
)

// A sweep that no longer leads ends no operation, empties no trash, and tells nobody of
// an excess.
func TestAFormerLeaderSweepsNoFiles(t *testing.T) {
	storetest.EachTakeover(t, 5, func(t *testing.T, s *store.Store) func(context.Context) error {
		w := newWorld(t, s, t.TempDir())
		ctx := t.Context()
		w.write(t, w.at("replaced"), "one")
		w.write(t, w.at("replaced"), "another")
		w.write(t, w.at("deleted"), "gone")
		_, err1 := w.Delete(ctx, w.acting, w.project, w.at("deleted"), Condition{})
		u, err2 := w.BeginUpload(ctx, w.acting, w.project, w.at("abandoned"), 10)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		if _, err := u.Append(ctx, 0, strings.NewReader("hello")); err != nil {
			t.Fatal(err)
		}
		// A notebook writes past the limit.
		w.limit(t, 1)
		err := errors.Join(os.WriteFile(w.disk(w.own("notebook")), make([]byte, 2*mebibyte), 0o644), w.Measure(ctx, w.project))
		if err != nil {
			t.Fatal(err)
		}
		w.clock.Advance(31 * 24 * time.Hour)
		return w.Sweep
	})
}

// A former leader records no measurement.
func TestAFormerLeaderMeasuresNothing(t *testing.T) {
	storetest.EachTakeover(t, 2, func(t *testing.T, s *store.Store) func(context.Context) error {
		w := newWorld(t, s, t.TempDir())
		w.write(t, w.at("file"), "content")
		w.ScanEvery = time.Hour
		w.clock.Advance(2 * time.Hour)
		return w.measureDue
	})
}
