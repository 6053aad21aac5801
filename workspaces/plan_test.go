package workspaces_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/projects"
	"weir/workspaces"
)

// planned is a world whose members launch at random.
type planned struct {
	*world
	random   *rand.Rand
	actors   []policies.Actor
	projects []int64
	live     []models.Workspace
	outcomes map[string]int
}

// In whatever state the world is, a preview and a launch of the same input have the
// same plan, and the launch commits it or is refused as it says.
func TestALaunchIsItsPreview(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		p := &planned{world: b, random: rand.New(rand.NewPCG(3, 9)), outcomes: map[string]int{}}
		p.populate(t)
		for i := range 120 {
			p.change(t)
			who := p.random.IntN(len(p.actors))
			in := p.input(i, p.projects[who])
			v, err := b.Preview(b.ctx, p.actors[who], in)
			if err != nil {
				t.Fatal(err)
			}
			w, err := b.Launch(b.ctx, p.actors[who], in)
			p.compare(t, fmt.Sprintf("%d: %+v", i, in), v, w, err)
			b.keepsRules(t)
		}
		for _, outcome := range []string{"refused", "granted", "fewer", "queued", "insufficient"} {
			if p.outcomes[outcome] < 2 {
				t.Errorf("only %d launches were %s: this shows little of them", p.outcomes[outcome], outcome)
			}
		}
	})
}

// populate adds two projects of different priority with two roles each.
func (p *planned) populate(t *testing.T) {
	t.Helper()
	p.gpus(t, 3)
	p.environment(t, workspaces.EnvironmentInput{Name: "needy", Command: []string{"/bin/sleep", "600"}, Minimum: models.Minimum{GPUs: 1, Cores: 40}})
	for _, priority := range []int64{30, 80} {
		project, err := p.world.projects.CreateProject(p.ctx, p.root, projects.ProjectInput{Name: fmt.Sprint("priority ", priority), Quota: plenty.Input(), Priority: priority, Confirmation: projects.Confirmation{Confirm: true, Reason: "a test"},
			Launch: models.LaunchParameters{CPUMilli: new(priority * 10), Env: map[string]string{"A": "b"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, cores := range []int64{80, 300} {
			limit := models.Resources{GPUCores: cores, GPUMemoryMiB: cores * 900, CPUMilli: 9000, MemoryMiB: 40_000}
			_, actor := p.addMember(t, p.addRole(t, project, fmt.Sprint(cores), limit))
			p.actors, p.projects = append(p.actors, actor), append(p.projects, project.ID)
		}
	}
}

// change lets time pass and ends some of what is live.
func (p *planned) change(t *testing.T) {
	t.Helper()
	p.clock.Advance(time.Duration(p.random.IntN(3)) * time.Minute)
	for len(p.live) > 0 && (len(p.live) > 12 || p.random.IntN(4) == 0) {
		i := p.random.IntN(len(p.live))
		w := p.live[i]
		p.live = append(p.live[:i], p.live[i+1:]...)
		storetest.InTx(t, p.store, func(q *store.Queries) error {
			from, now := w.State, q.Now()
			w.State, w.EndedAt = models.StateStopped, &now
			return errors.Join(q.Transition(&w, from, models.Text{}), p.pool.Release(q, w.HolderID))
		})
	}
}

func (p *planned) input(i int, project int64) workspaces.LaunchInput {
	in := workspaces.LaunchInput{ProjectID: project, Name: fmt.Sprint("w", i), Request: gpu(p.random.Int64N(3), 10+p.random.Int64N(95)),
		WhenInsufficient: []string{"", workspaces.WhenInsufficientFewer, workspaces.WhenInsufficientFewer, workspaces.WhenInsufficientWait}[p.random.IntN(4)]}
	switch p.random.IntN(6) {
	case 0:
		in.Request = models.LaunchParameters{}
	case 1:
		in.EnvironmentID = p.random.Int64N(4)
	case 2:
		in.VersionConstraints = []string{"python>=3.11", "python>=4", "!"}[p.random.IntN(3)]
	case 3:
		in.Request.GPUMemoryMiB = new(1000 + p.random.Int64N(60_000))
	}
	return in
}

func (p *planned) compare(t *testing.T, what string, v workspaces.Plan, w models.Workspace, err error) {
	t.Helper()
	switch insufficient := (*workspaces.Insufficient)(nil); {
	case v.Rejection != nil:
		p.outcomes["refused"]++
		if err == nil || !reflect.DeepEqual(err, v.Rejection) {
			t.Fatalf("%s: the preview refuses with %v, the launch gives %v", what, v.Rejection, err)
		}
		return
	case v.State == "":
		p.outcomes["insufficient"]++
		if !errors.As(err, &insufficient) || !reflect.DeepEqual(insufficient, v.Insufficient()) {
			t.Fatalf("%s: the preview says insufficient, %+v; the launch gives %v", what, v.Decision, err)
		}
		return
	case err != nil:
		t.Fatalf("%s: the plan is %+v, the launch gives %v", what, v, err)
	}
	row := p.row(t, w.ID)
	p.live = append(p.live, row)
	if row.State != v.State || row.EnvironmentID != v.Environment.ID || row.Demand != v.Target.Demand || !reflect.DeepEqual(row.Target, v.Target.Parameters) {
		t.Fatalf("%s: planned is\n%+v\nlaunched\n%+v", what, v, row)
	}
	p.compareShares(t, what, v, row)
}

// compareShares checks that a workspace has the shares of its plan.
func (p *planned) compareShares(t *testing.T, what string, v workspaces.Plan, row models.Workspace) {
	t.Helper()
	shares, err := p.store.Read(p.ctx).SharesOf(row.HolderID)
	if err != nil {
		t.Fatal(err)
	}
	got, want := map[int64][2]int64{}, map[int64][2]int64{}
	for _, s := range shares {
		got[s.DeviceID] = [2]int64{s.Cores, s.MemoryMiB}
	}
	switch {
	case row.State == models.StateQueued:
		p.outcomes["queued"]++
	case v.Decision.Outcome == models.OutcomePartial:
		p.outcomes["fewer"]++
	default:
		p.outcomes["granted"]++
	}
	if row.State == models.StateStarting {
		for _, g := range v.Decision.Grants {
			want[g.Device.ID] = [2]int64{g.Cores, g.MemoryMiB}
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("%s: shares are %v, planned are %v", what, got, want)
	}
}

// After a default launch, a run of all GPU cores of the limit still starts: what nobody asked for takes
// what remains.
func TestADefaultTakesWhatRemains(t *testing.T) {
	each(t, func(t *testing.T, b *world) {
		b.gpus(t, 1)
		limit := models.Resources{GPUCores: 50, GPUMemoryMiB: 40_000, CPUMilli: 1500, MemoryMiB: 4096}
		_, actor := b.addMember(t, b.addRole(t, b.project, "small", limit))
		launch := workspaces.LaunchInput{ProjectID: b.project.ID, Name: "nb", Request: models.LaunchParameters{GPUs: new(int64(0))}}
		if _, err := b.Launch(b.ctx, actor, launch); err != nil {
			t.Fatal(err)
		}
		launch.Name, launch.Request = "all cores", gpu(1, 50)
		p, err := b.Preview(b.ctx, actor, launch)
		if err != nil || p.Rejection != nil || p.Demand.CPUMilli < 500 || p.Demand.CPUMilli > 750 {
			t.Errorf("%+v, %v, %v", p.Demand, p.Rejection, err)
		}
	})
}
