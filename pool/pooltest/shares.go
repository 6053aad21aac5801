package pooltest

import (
	"strings"
	"testing"

	"weir/models"
	"weir/pool/placement"
)

// Half is half of one GPU of a [Machine].
var Half = models.Demand{GPUs: 1, Cores: 50, GPUMemoryMiB: 40_000}

// WantClaim claims shares, with an outcome that is known before, and checks
// the rules of the devices.
func (w *World) WantClaim(t *testing.T, m models.Member, d models.Demand, want string) models.Workspace {
	t.Helper()
	row, decision := w.Claim(t, m, d)
	if decision.Outcome != want {
		t.Errorf("%s, want %s: %s", decision.Outcome, want, decision.Explanation)
	}
	w.CheckDevices(t)
	return row
}

// Totals are those of the pool's view.
func (w *World) Totals() (placement.Totals, error) {
	v, err := w.Pool.View(w.Ctx, w.Root)
	return v.Totals, err
}

// CountEvents counts the lines of a workspace's history that say text.
func (w *World) CountEvents(t *testing.T, row models.Workspace, text string) (n int) {
	t.Helper()
	events, err := w.Store.Read(w.Ctx).WorkspaceEvents(row.ID)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if strings.Contains(e.Message.String(), text) {
			n++
		}
	}
	return n
}

// Sweep looks for silent providers and announces ends, once.
func (w *World) Sweep(t *testing.T) {
	t.Helper()
	if err := w.Providers.Sweep(w.Ctx); err != nil {
		t.Fatal(err)
	}
}

// Available is what the pool has available now.
func (w *World) Available(t *testing.T) models.Availability {
	t.Helper()
	a, err := w.Pool.Availability(w.Store.Read(w.Ctx))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
