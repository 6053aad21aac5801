package projects_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool/pooltest"
	"weir/pool/projects"
)

// held is one thing that was held for a time; until is zero while it is.
type inUse struct {
	cpu, memory int64
	cores, vram int64
	user        int64
	from, until time.Time
}

// seconds is how long it was held within a span.
func (h inUse) seconds(from, to time.Time) float64 {
	until := h.until
	if until.IsZero() || until.After(to) {
		until = to
	}
	if h.from.After(from) {
		from = h.from
	}
	return max(0, until.Sub(from).Seconds())
}

// keep writes it into the tables.
func (o *world) keep(t *testing.T, m models.Member, device int64, h inUse) {
	t.Helper()
	until := func() *time.Time {
		if h.until.IsZero() {
			return nil
		}
		return &h.until
	}
	w := models.Workspace{ProjectID: m.ProjectID, MemberID: m.ID, UserID: m.UserID, EnvironmentID: o.Environment(t), Name: policies.NewSecret(),
		State: models.StateRunning, Demand: models.Demand{CPUMilli: h.cpu, MemoryMiB: h.memory}, Version: 1, RequestedAt: h.from, StartedAt: &h.from, EndedAt: until()}
	if w.EndedAt != nil {
		w.State = models.StateStopped
	}
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		if err := q.CreateWorkspace(&w, models.Say("Running.")); err != nil {
			return err
		}
		return q.CreateShare(&models.Share{DeviceID: device, HolderID: w.HolderID, ProjectID: m.ProjectID, UserID: m.UserID, Cores: h.cores, MemoryMiB: h.vram,
			Enforcement: models.EnforcedAdvisory, From: h.from, Until: until()})
	})
}

// device adds a machine with one GPU.
func (o *world) device(t *testing.T) int64 {
	t.Helper()
	d := models.Device{UUID: "GPU-0", Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_920, Simulated: true, Present: true, Sharing: models.SharingTimeSlicing,
		Cores: 100, Version: 1, CreatedAt: o.Store.Now()}
	storetest.InTx(t, o.Store, func(q *store.Queries) error {
		p := models.Provider{Name: "node", State: models.ProviderOnline, SeenAt: q.Now(), Version: 1, CreatedAt: q.Now()}
		err := q.CreateProvider(&p)
		if err != nil {
			return err
		}
		d.ProviderID = p.ID
		return q.CreateDevice(&d)
	})
	return d.ID
}

// TestUsageIsWhatWasHeld compares every step with the sum over all that was
// held, for random pasts.
func TestUsageIsWhatWasHeld(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		random := rand.New(rand.NewPCG(5, 8))
		p := o.NewProject(t, "vision", models.Resources{GPUCores: 800, CPUMilli: 64000})
		r := o.NewRole(t, p.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 100, CPUMilli: 8000})
		var members []models.Member
		for range 3 {
			m, _ := o.NewMember(t, r)
			members = append(members, m)
		}
		device := o.device(t)
		o.Clock.Advance(100 * 24 * time.Hour)
		now := o.Store.Now()
		var past []inUse
		for range 60 {
			m := members[random.IntN(len(members))]
			h := inUse{cpu: random.Int64N(8000), memory: random.Int64N(9000), cores: 1 + random.Int64N(100), vram: random.Int64N(80000), user: m.UserID,
				from: now.Add(-time.Duration(random.Int64N(int64(40 * 24 * time.Hour)))).Truncate(time.Microsecond)}
			if random.IntN(4) > 0 {
				h.until = h.from.Add(time.Duration(random.Int64N(int64(now.Sub(h.from))))).Truncate(time.Microsecond)
			}
			past = append(past, h)
			o.keep(t, m, device, h)
		}
		ago := func(days int) string { return now.AddDate(0, 0, -days).Format(time.RFC3339Nano) }
		for _, in := range []projects.UsageQuery{{From: ago(1)}, {From: ago(7)}, {}, {From: ago(90)}, {From: ago(33), Until: ago(2)},
			{From: now.AddDate(0, 0, -20).Format(time.DateOnly), Until: now.AddDate(0, 0, -11).Format(time.DateOnly)}} {
			u, err := o.Usage(o.Ctx, o.Root, p.ID, in)
			if err != nil {
				t.Fatal(err)
			}
			o.compare(t, u, past)
			people, err := o.UsageOfPeople(o.Ctx, o.Root, p.ID, in, store.Page{})
			if err != nil || len(people) != 3 {
				t.Fatalf("%d people, %v", len(people), err)
			}
			for _, person := range people {
				want := 0.0
				for _, h := range past {
					if h.user == person.UserID {
						want += float64(h.cores) * h.seconds(u.From, u.Until) / 3600
					}
				}
				near(t, "GPU core hours of a person", person.Used.GPUCoreHours, want)
			}
			all, err := o.AllUsage(o.Ctx, o.Root, in, store.Page{})
			if err != nil || len(all.Projects) != 1 || all.Projects[0].Used != u.Used || all.Used != u.Used || *all.Projects[0].OfTotal.GPUCores != 1 {
				t.Fatalf("usage of all projects: %+v, %v", all, err)
			}
			if len(all.Steps) != len(u.Steps) {
				t.Fatalf("%d steps of all projects, %d of the only one", len(all.Steps), len(u.Steps))
			}
			for i, s := range all.Steps {
				if s.InUse != u.Steps[i].InUse || s.Quota != nil {
					t.Errorf("step %d of all projects: %+v, of the only one %+v", i, s, u.Steps[i])
				}
			}
			if want := u.Used.GPUCoreHours / u.Until.Sub(u.Project.UsedSince(u.From, u.Until)).Hours() / 800; math.Abs(*u.OfQuota.GPUCores-want) > 1e-4 || u.OfQuota.MemoryMiB != nil || all.Projects[0].OfQuota.CPUMilli == nil {
				t.Errorf("of the quota: %v, want %v", *u.OfQuota.GPUCores, want)
			}
			near(t, "GPU core hours of the role", u.Roles[0].Used.GPUCoreHours, u.Used.GPUCoreHours)
		}
		other := o.NewProject(t, "speech", models.Resources{GPUCores: 800, CPUMilli: 64000})
		m, _ := o.NewMember(t, o.NewRole(t, other.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 100, CPUMilli: 8000}))
		o.keep(t, m, device, inUse{cpu: 4000, memory: 1000, cores: 70, vram: 7000, user: m.UserID, from: now.AddDate(0, 0, -50)})
		all, err1 := o.AllUsage(o.Ctx, o.Root, projects.UsageQuery{}, store.Page{})
		one, err2 := o.Usage(o.Ctx, o.Root, p.ID, projects.UsageQuery{})
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		o.compare(t, one, past)
		for i, s := range all.Steps {
			near(t, "GPU cores of both projects", s.InUse.GPUCores, float64(one.Steps[i].InUse.GPUCores+70))
			near(t, "CPU of both projects", s.InUse.CPUMilli, float64(one.Steps[i].InUse.CPUMilli+4000))
		}
	})
}

func (o *world) compare(t *testing.T, u projects.ProjectUsage, past []inUse) {
	t.Helper()
	for i, s := range u.Steps {
		end := u.Until
		if i+1 < len(u.Steps) {
			end = u.Steps[i+1].From
		}
		var cpu, memory, gpu, vram float64
		for _, h := range past {
			part := h.seconds(s.From, end) / end.Sub(s.From).Seconds()
			cpu, memory, gpu, vram = cpu+part*float64(h.cpu), memory+part*float64(h.memory), gpu+part*float64(h.cores), vram+part*float64(h.vram)
		}
		near(t, "CPU", s.InUse.CPUMilli, cpu)
		near(t, "memory", s.InUse.MemoryMiB, memory)
		near(t, "GPU cores", s.InUse.GPUCores, gpu)
		near(t, "GPU memory", s.InUse.GPUMemoryMiB, vram)
	}
}

// A project that is an hour old is measured by that hour, not by the month before it.
func TestUsageOfAYoungProject(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "young", models.Resources{GPUCores: 800, CPUMilli: 64000})
		m, _ := o.NewMember(t, o.NewRole(t, p.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 100, CPUMilli: 8000}))
		o.keep(t, m, o.device(t), inUse{cpu: 4000, memory: 1000, cores: 100, vram: 7000, user: m.UserID, from: o.Store.Now()})
		o.Clock.Advance(time.Hour)
		u, err1 := o.Usage(o.Ctx, o.Root, p.ID, projects.UsageQuery{})
		people, err2 := o.UsageOfPeople(o.Ctx, o.Root, p.ID, projects.UsageQuery{}, store.Page{})
		all, err3 := o.AllUsage(o.Ctx, o.Root, projects.UsageQuery{}, store.Page{})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		near(t, "GPU cores of the project", u.Used.Average.GPUCores, 100)
		near(t, "GPU cores of the project in the list", all.Projects[0].Used.Average.GPUCores, 100)
		near(t, "GPU cores of the role", u.Roles[0].Used.Average.GPUCores, 100)
		near(t, "GPU cores of the member", people[0].Used.Average.GPUCores, 100)
		near(t, "GPU core hours", u.Used.GPUCoreHours, 100)
		near(t, "GPU cores of all projects", all.Used.Average.GPUCores, 100)
		for _, steps := range [][]projects.UsageStep{u.Steps, all.Steps} {
			last := len(steps) - 1
			near(t, "GPU cores of the last step", steps[last].InUse.GPUCores, 100)
			near(t, "GPU cores of the step before", steps[last-1].InUse.GPUCores, 0)
		}
	})
}

// Fractions and hours are those of what was used, however little of the span that is.
func TestUsageOfASmallProject(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "small", models.Resources{GPUCores: 200, CPUMilli: 64000})
		role := o.NewRole(t, p.ID, "engineer", models.PermissionMember, models.Resources{GPUCores: 100, CPUMilli: 8000})
		ann, _ := o.NewMember(t, role)
		bob, _ := o.NewMember(t, role)
		o.Clock.Advance(40 * 24 * time.Hour)
		now, device := o.Store.Now(), o.device(t)
		for member, span := range map[models.Member]time.Duration{ann: 25 * time.Minute, bob: 75 * time.Minute} {
			o.keep(t, member, device, inUse{cpu: 100, memory: 1_000_000_000, cores: 10, vram: 700, user: member.UserID,
				from: now.Add(-24 * time.Hour), until: now.Add(span - 24*time.Hour)})
		}
		u, err1 := o.Usage(o.Ctx, o.Root, p.ID, projects.UsageQuery{})
		people, err2 := o.UsageOfPeople(o.Ctx, o.Root, p.ID, projects.UsageQuery{}, store.Page{})
		all, err3 := o.AllUsage(o.Ctx, o.Root, projects.UsageQuery{}, store.Page{})
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if u.Used.GPUCoreHours != 16.67 || u.Used.CPUHours != 0.17 || u.OfQuota.GPUCores == nil || *u.OfQuota.GPUCores != 0.0001 {
			t.Errorf("the project used %+v, of its quota %v", u.Used, u.OfQuota.GPUCores)
		}
		for i, want := range []float64{0.25, 0.75} {
			if got := people[i].OfTotal; got.GPUCores == nil || *got.GPUCores != want || *got.MemoryMiB != want {
				t.Errorf("%s: %v of the total; want %v", people[i].UserName, got.GPUCores, want)
			}
		}
		if of := all.Projects[0]; *of.OfTotal.GPUCores != 1 || *of.OfQuota.GPUCores != 0.0001 || all.Used != u.Used {
			t.Errorf("of all projects: %v of the total, %v of the quota, %+v", *of.OfTotal.GPUCores, *of.OfQuota.GPUCores, all.Used)
		}
	})
}

// near allows for rounding to whole units.
func near[N int64 | float64](t *testing.T, what string, got N, want float64) {
	t.Helper()
	if math.Abs(float64(got)-want) > 1.01 {
		t.Errorf("%s: %v, want %.2f", what, got, want)
	}
}

// TestHistoryFollowsThePromises changes roles, members and quotas at random:
// the newest row of the history is always what stands promised, and the rows
// leave no gap.
func TestHistoryFollowsThePromises(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		random := rand.New(rand.NewPCG(1, 2))
		p := o.NewProject(t, "vision", pooltest.Cores(1000))
		roles := []models.Role{o.NewRole(t, p.ID, "a", models.PermissionMember, pooltest.Cores(10)), o.NewRole(t, p.ID, "b", models.PermissionMember, pooltest.Cores(20))}
		began := o.Store.Now()
		for range 60 {
			if random.IntN(3) > 0 {
				o.Clock.Advance(time.Hour)
			}
			switch r := &roles[random.IntN(2)]; random.IntN(4) {
			case 0, 1:
				o.NewMember(t, *r)
			case 2:
				changed, err := o.UpdateRole(o.Ctx, o.Root, p.ID, r.ID, projects.RoleInput{Name: r.Name, Permission: r.Permission, Limit: pooltest.Cores(random.Int64N(12)).Input()})
				if err != nil {
					t.Fatal(err)
				}
				*r = changed
			case 3:
				in := projects.ProjectInput{Name: p.Name, Quota: pooltest.Cores(1000 + random.Int64N(50)).Input()}
				in.Confirmation = pooltest.Confirmed
				if _, err := o.UpdateProject(o.Ctx, o.Root, p.ID, in); err != nil {
					t.Fatal(err)
				}
			}
			o.historyAgrees(t, p.ID, began)
		}
	})
}

func (o *world) historyAgrees(t *testing.T, project int64, began time.Time) {
	t.Helper()
	q := o.Store.Read(o.Ctx)
	list, err1 := q.ProjectHistory(store.AllProjects, project, began.Add(-time.Hour), o.Store.Now().Add(time.Hour))
	v, err2 := o.Project(context.Background(), o.Root, project)
	if err1 != nil || err2 != nil || len(list) == 0 {
		t.Fatal(len(list), err1, err2)
	}
	for i, h := range list[:len(list)-1] {
		if h.UntilAt == nil || !h.UntilAt.Equal(list[i+1].FromAt) {
			t.Errorf("row %d ends at %v, the next one begins at %v", i, h.UntilAt, list[i+1].FromAt)
		}
	}
	if h := list[len(list)-1]; h.UntilAt != nil || h.Allocated != v.Allocated || h.Quota != v.Quota || h.Members != v.Members {
		t.Errorf("the history ends with %+v; allocated is %+v of %+v to %d", h, v.Allocated, v.Quota, v.Members)
	}
}

// TestUsageOfPeopleIsForManagers shows a plain member nobody's use but their
// own.
func TestUsageOfPeopleIsForManagers(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		p := o.NewProject(t, "vision", pooltest.Cores(1000))
		r := o.NewRole(t, p.ID, "engineer", models.PermissionMember, pooltest.Cores(10))
		m, u := o.NewMember(t, r)
		o.NewMember(t, r)
		_, manager := o.NewMember(t, o.NewRole(t, p.ID, "lead", models.PermissionManager, pooltest.Cores(10)))
		people, err := o.UsageOfPeople(o.Ctx, o.Actor(t, u), p.ID, projects.UsageQuery{}, store.Page{})
		if err != nil || len(people) != 1 || people[0].ID != m.ID {
			t.Errorf("a member sees %v, %v", people, err)
		}
		if people, err := o.UsageOfPeople(o.Ctx, o.Actor(t, manager), p.ID, projects.UsageQuery{}, store.Page{}); err != nil || len(people) != 3 {
			t.Errorf("a manager sees %v, %v", people, err)
		}
		_, err = o.UsageOfPeople(o.Ctx, o.Actor(t, o.NewPerson(t)), p.ID, projects.UsageQuery{}, store.Page{})
		pooltest.WantError(t, err, models.KindNotFound)
		_, err = o.Usage(o.Ctx, o.Actor(t, u), p.ID, projects.UsageQuery{From: "yesterday"})
		pooltest.WantError(t, err, models.KindInvalid, "from")
		_, err = o.AllUsage(o.Ctx, o.Actor(t, manager), projects.UsageQuery{}, store.Page{})
		pooltest.WantError(t, err, models.KindForbidden)
	})
}
