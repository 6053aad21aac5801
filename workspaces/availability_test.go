package workspaces_test

import (
	"math/rand/v2"
	"testing"

	"weir/models"
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

func TestAvailableIsForMembers(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		want(t, second(b.Available(b.ctx, b.root, b.project.ID)), models.KindForbidden)
		_, other := b.addMember(t, b.addRole(t, b.addProject(t, "other", plenty), "r", plenty))
		want(t, second(b.Available(b.ctx, other, b.project.ID)), models.KindNotFound)
	})
}
