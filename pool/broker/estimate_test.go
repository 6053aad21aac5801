package broker_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/pool/estimates"
)

// Whoever waits for a GPU that is reserved is told when its last reservation ends, whether it
// is used or not.
func TestEstimateOfAReservedGPU(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		ask := models.Demand{GPUs: 1, Cores: 100, GPUMemoryMiB: 80_000}
		wants := func(at time.Time) {
			t.Helper()
			v, err := o.Pool.LaunchView(o.Ctx, o.Root, models.Project{ID: o.member.ProjectID}, ask, models.Decision{})
			if e := v.Estimate; err != nil || e.Outcome != estimates.Placed || !e.At.Equal(at) || !e.Known {
				t.Errorf("%+v, %v; want %v", e, err, at)
			}
		}
		r := o.reserve(t, o.ask(60))
		wants(r.EndsAt)
		if _, ok := o.use(t, o.member, r.ID, models.Demand{GPUs: 1, Cores: 60, GPUMemoryMiB: 1000}); !ok {
			t.Fatal("it cannot be used")
		}
		wants(r.EndsAt)
		later := o.ask(20)
		later.From = o.hour(3)
		wants(o.reserve(t, later).EndsAt)
	})
}
