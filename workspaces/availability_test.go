package workspaces_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/workspaces"
)

// TestLaunchGetsWhatIsAvailable launches, at many fillings of the pool and of
// the limit, what was said to be available now, and what was said not to.
func TestLaunchGetsWhatIsAvailable(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 4)
		random := rand.New(rand.NewPCG(7, 7))
		now, not := 0, 0
		for range 12 {
			list, err := b.Available(b.ctx, b.actor, b.project.ID)
			if err != nil || len(list) != 7 {
				t.Fatal(len(list), err)
			}
			f := list[random.IntN(len(list))]
			if !f.AvailableNow() && len(f.Reasons) == 0 {
				t.Errorf("%+v does not say why not", f)
			}
			in := b.ask("", gpu(f.Demand.GPUs, f.Demand.Cores))
			in.Name, in.WhenInsufficient = "w"+string(rune('a'+now+not)), workspaces.WhenInsufficientRefuse
			_, err = b.Launch(b.ctx, b.actor, in)
			if f.AvailableNow() != (err == nil) {
				t.Fatalf("%+v was said of a launch that ended with %v", f, err)
			}
			if f.AvailableNow() {
				now++
			} else {
				not++
			}
		}
		if now == 0 || not == 0 {
			t.Errorf("%d were available and %d were not: this shows nothing", now, not)
		}
	})
}

// Sizes are refused for whatever would refuse their launch, and with its reason.
func TestAvailableSaysWhatALaunchWould(t *testing.T) {
	refused := func(t *testing.T, b *world, actor policies.Actor, why string) {
		t.Helper()
		list, err := b.Available(b.ctx, actor, b.project.ID)
		if err != nil || len(list) != 7 {
			t.Fatal(len(list), err)
		}
		for _, f := range list {
			if f.Outcome != models.OutcomeRefused || len(f.Reasons) == 0 || !strings.Contains(f.Reasons[0].String(), why) {
				t.Errorf("%+v; want refused as %q", f, why)
			}
			_, err := b.Launch(b.ctx, actor, b.ask("more", gpu(f.Demand.GPUs, f.Demand.Cores)))
			want(t, err, models.KindNoCapacity, why)
		}
	}
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 8)
		limit := models.Resources{GPUCores: 1000, GPUMemoryMiB: 1e6, CPUMilli: 1000, MemoryMiB: 1e6}
		_, actor := b.addMember(t, b.addRole(t, b.project, "one CPU", limit))
		if _, err := b.Launch(b.ctx, actor, b.ask("first", models.LaunchParameters{CPUMilli: new(int64(900))})); err != nil {
			t.Fatal(err)
		}
		refused(t, b, actor, "CPU: 0.9 in use")
		limit.CPUMilli = 100_000
		_, actor = b.addMember(t, b.addRole(t, b.project, "many", limit))
		for i := range 20 {
			if _, err := b.Launch(b.ctx, actor, b.ask(fmt.Sprint("w", i), models.LaunchParameters{})); err != nil {
				t.Fatal(err)
			}
		}
		refused(t, b, actor, "You have 20 workspaces running or waiting in this project; the maximum is 20.")
		storetest.InTx(t, b.store, func(q *store.Queries) error {
			b.env.Minimum.Cores = 50
			return q.UpdateEnvironment(&b.env)
		})
		list, err := b.Available(b.ctx, b.actor, b.project.ID)
		if err != nil || list[1].Outcome != models.OutcomeRefused || !list[2].AvailableNow() {
			t.Errorf("the environment needs 50 cores: %+v, %v", list, err)
		}
	})
}

func TestAvailableIsForMembers(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		want(t, second(b.Available(b.ctx, b.root, b.project.ID)), models.KindForbidden)
		_, other := b.addMember(t, b.addRole(t, b.addProject(t, "other", plenty), "r", plenty))
		want(t, second(b.Available(b.ctx, other, b.project.ID)), models.KindNotFound)
	})
}
