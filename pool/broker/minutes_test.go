package broker_test

import (
	"strings"
	"testing"
	"time"

	"weir/models"
	"weir/pool/pooltest"
)

// The earliest start of a refused request is a whole minute from which it can be reserved, whenever what is in its
// way ends.
func TestEarliestStartIsAMinute(t *testing.T) {
	for name, c := range map[string]struct {
		after time.Duration // from the end of the first reservation to the next one
		want  time.Duration // from the beginning of the first one
	}{"nothing follows": {100 * time.Hour, 61 * time.Minute}, "it just fits": {60*time.Minute + 20*time.Second, 61 * time.Minute},
		"a minute is too late": {60*time.Minute + 19*time.Second, 61*time.Minute + 60*time.Minute + 60*time.Minute}} {
		t.Run(name, func(t *testing.T) {
			each(t, 1, func(t *testing.T, o *world) {
				minute := o.Store.Now().Truncate(time.Minute).Add(time.Minute)
				o.Clock.Advance(minute.Add(40 * time.Second).Sub(o.Store.Now()))
				first := o.reserve(t, o.ask(100))
				next := o.ask(100)
				next.From = new(first.EndsAt.Add(c.after))
				o.reserve(t, next)
				ask := o.ask(100)
				d, err := o.Preview(o.Ctx, o.actor, ask)
				if err != nil || d.Earliest == nil || !d.Earliest.Equal(minute.Add(c.want)) {
					t.Fatalf("from %v on, the earliest start is %v: %v", minute, d.Earliest, err)
				}
				_, err = o.Reserve(o.Ctx, o.actor, ask)
				pooltest.WantError(t, err, models.KindNoCapacity, models.Moment(*d.Earliest).String())
				ask.From = d.Earliest
				if r := o.reserve(t, ask); r.Outcome != "granted" || !r.StartsAt.Equal(*d.Earliest) {
					t.Errorf("from then on, %+v is reserved", r)
				}
			})
		})
	}
}

// Where a request would fit but for a reservation, the answer says so, and only there.
func TestReservedRestIsNamed(t *testing.T) {
	each(t, 1, func(t *testing.T, o *world) {
		const reserved = "; the rest is reserved"
		answers := func(cores int64) string {
			_, d := o.World.Claim(t, o.member, models.Demand{GPUs: 1, Cores: cores, GPUMemoryMiB: 1000})
			return d.Explanation.String()
		}
		o.WantClaim(t, o.member, models.Demand{GPUs: 1, Cores: 20, GPUMemoryMiB: 1000}, models.OutcomeGranted)
		o.reserve(t, o.ask(70))
		for _, cores := range []int64{11, 80} {
			if said := answers(cores); !strings.Contains(said, "at most 10 available"+reserved) {
				t.Errorf("%d cores: %s", cores, said)
			}
		}
		if said := answers(81); !strings.Contains(said, "at most 10 available") || strings.Contains(said, reserved) {
			t.Errorf("what is in use has more than is left: %s", said)
		}
	})
}
