package pool_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/providers"
)

// The live pool's whole decision, with the database: while nothing changes,
// after another server has changed one machine, the first one of a server, and one
// that reads all machines, in pools of which half is in use.
func BenchmarkDecision(b *testing.B) {
	for _, machines := range []int{125, 1000} {
		b.Run(fmt.Sprint(8*machines, " GPUs"), func(b *testing.B) { benchmarkDecision(b, machines) })
	}
}

func benchmarkDecision(b *testing.B, machines int) {
	db := storetest.Open(b, cmp.Or(os.Getenv("WEIR_BENCH_DATABASE"), "sqlite"))
	access, err := policies.NewAccess()
	if err != nil {
		b.Fatal(err)
	}
	w := bigPool(b, db, machines)
	if err := storetest.Analyze(db); err != nil {
		b.Fatal(err)
	}
	fresh := func() *pool.Scheduler { return pool.New(db, access, providers.New(db, access, nil)) }
	warm, q := fresh(), db.Read(context.Background())
	run := func(name string, scheduler func() *pool.Scheduler, before func(i int)) {
		b.Run(name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				before(i)
				b.StartTimer()
				pool, err := scheduler().Availability(q)
				if err != nil {
					b.Fatal(err)
				}
				if d := pool.Decide(models.Project{ID: w.ProjectID}, w.Demand, 0); d.Outcome != models.OutcomeGranted {
					b.Fatal(d.Outcome)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
	run("cached", func() *pool.Scheduler { return warm }, func(int) {})
	run("changed", func() *pool.Scheduler { return warm }, func(i int) {
		storetest.InTx(b, db, func(q *store.Queries) error {
			p, err := q.Provider(int64(1 + i%machines))
			if err != nil {
				return err
			}
			return q.UpdateProvider(&p)
		})
	})
	run("shared", func() *pool.Scheduler { return warm }, func(i int) { // what a launch or its end elsewhere changes
		storetest.InTx(b, db, func(q *store.Queries) error { return q.AnnounceShareEnd(int64(1+8*(i%machines)), nil, models.Text{}) })
	})
	idle := storetest.User(b, db, "idle@example.org", false)
	run("account", func() *pool.Scheduler { return warm }, func(int) {
		storetest.InTx(b, db, func(q *store.Queries) error {
			u, err := q.User(idle.ID)
			if err != nil {
				return err
			}
			return q.UpdateUser(&u)
		})
	})
	started := fresh()
	run("first", func() *pool.Scheduler { return started }, func(int) { // of a server that has listed its GPUs when it started
		started = fresh()
		if _, err := started.Devices(context.Background()); err != nil {
			b.Fatal(err)
		}
	})
	run("anew", fresh, func(int) {})
}

// bigPool makes machines of 8 GPUs with a share of half of each GPU, and
// returns a request that is not made yet.
func bigPool(b *testing.B, db *store.Store, machines int) (w models.Workspace) {
	b.Helper()
	user := storetest.User(b, db, "a@example.org", false)
	storetest.InTx(b, db, func(q *store.Queries) error {
		now := q.Now()
		project := models.Project{Name: "p", StartsAt: now, Version: 1, CreatedAt: now, Priority: 50, Quota: models.Resources{GPUCores: 1e6, GPUMemoryMiB: 1e9, CPUMilli: 1e9, MemoryMiB: 1e9}}
		if err := q.CreateProject(&project); err != nil {
			return err
		}
		role := models.Role{ProjectID: project.ID, Name: "r", Permission: models.PermissionMember, Limit: project.Quota, Version: 1, CreatedAt: now}
		if err := q.CreateRole(&role); err != nil {
			return err
		}
		member := models.Member{ProjectID: project.ID, UserID: user.ID, RoleID: role.ID, Version: 1, CreatedAt: now}
		if err := q.CreateMember(&member); err != nil {
			return err
		}
		env := models.Environment{Name: "e", Language: "python", LanguageVersion: "3.11", Version: 1, CreatedAt: now}
		if err := q.CreateEnvironment(&env); err != nil {
			return err
		}
		w = models.Workspace{ProjectID: project.ID, MemberID: member.ID, UserID: user.ID, EnvironmentID: env.ID, Name: "w", State: models.StateRunning,
			Demand: models.Demand{GPUs: 1, Cores: 30, GPUMemoryMiB: 1000}, Version: 1, RequestedAt: now}
		holder := w
		if err := q.CreateWorkspace(&holder, models.Say("Requested.")); err != nil {
			return err
		}
		for n := range machines {
			p := models.Provider{Name: fmt.Sprint("node-", n), State: models.ProviderOnline, SeenAt: now, Version: 1, CreatedAt: now}
			if err := q.CreateProvider(&p); err != nil {
				return err
			}
			for i := range 8 {
				d := models.Device{ProviderID: p.ID, UUID: fmt.Sprintf("GPU-%d-%d", n, i), Number: int64(i), Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81_920,
					Simulated: true, Present: true, Sharing: models.SharingTimeSlicing, Cores: 100, Version: 1, CreatedAt: now}
				if err := q.CreateDevice(&d); err != nil {
					return err
				}
				share := models.Share{DeviceID: d.ID, HolderID: holder.HolderID, ProjectID: project.ID, UserID: user.ID, Cores: 50, MemoryMiB: 40_000,
					Enforcement: models.EnforcedAdvisory, From: now}
				if err := q.CreateShare(&share); err != nil {
					return err
				}
			}
		}
		return nil
	})
	return w
}
