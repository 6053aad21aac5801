package pool_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/pool"
	"weir/pool/placement"
	"weir/pool/pooltest"
	"weir/pool/providers"
)

// fleet is a machine as its agent would report it: GPUs that come and go, and
// that the agent cuts as it was told, under new names each time.
type fleet struct {
	random *rand.Rand
	there  [3]bool
	mode   [3]string
	layout [3][]string
	cuts   [3]int
}

var migProfiles = map[string]int64{"1g.10gb": 14, "3g.40gb": 42, "4g.40gb": 57}

func (f *fleet) reports() (list []providers.DeviceReport) {
	for i := range f.there {
		if !f.there[i] {
			continue
		}
		gpu := pooltest.Machine(3)[i]
		gpu.MIGProfiles, gpu.Sharing = []string{"1g.10gb", "3g.40gb", "4g.40gb"}, f.mode[i]
		list = append(list, gpu)
		if f.mode[i] != models.SharingMIG {
			continue
		}
		for n, profile := range f.layout[i] {
			list = append(list, providers.DeviceReport{UUID: fmt.Sprintf("MIG-%d-%d-%d", i, f.cuts[i], n), Parent: gpu.UUID, Index: i, Profile: profile,
				Cores: migProfiles[profile], Model: gpu.Model, MemoryMiB: 80_000 * migProfiles[profile] / 100, NUMA: -1, Simulated: true})
		}
	}
	return list
}

// obey does as the portal orders.
func (f *fleet) obey(orders providers.Orders) {
	for _, o := range orders.Devices {
		var i int
		if _, err := fmt.Sscanf(o.UUID, "GPU-%d", &i); err != nil {
			continue
		}
		mode := ""
		if o.Sharing == models.SharingMIG || o.Sharing == models.SharingMPS {
			mode = o.Sharing
		}
		if mode != f.mode[i] || !slices.Equal(o.Layout, f.layout[i]) {
			f.mode[i], f.layout[i], f.cuts[i] = mode, o.Layout, f.cuts[i]+1
		}
	}
}

// keepsGPUs is rule 3 of the physical GPU: what is held of it and of all that
// was cut out of it, there or not, is at most the whole. An instance is held
// whole, whatever was asked for.
func (o *world) keepsGPUs(t *testing.T, after string) {
	t.Helper()
	db, err := o.Store.SQL()
	if err != nil {
		t.Fatal(err)
	}
	var uuid string
	var cores int64
	err = db.QueryRow(`SELECT uuid, SUM(cores) FROM (SELECT p.uuid AS uuid, CASE WHEN d.parent_id IS NULL THEN s.cores ELSE d.cores END AS cores
		FROM shares s JOIN devices d ON d.id = s.device_id JOIN devices p ON p.id = COALESCE(d.parent_id, d.id) WHERE s.until_at IS NULL) AS in_use
		GROUP BY uuid HAVING SUM(cores) > 100`).Scan(&uuid, &cores)
	if !errors.Is(err, sql.ErrNoRows) {
		t.Fatalf("after %s %d cores of %s are in use, %v", after, cores, uuid, err)
	}
	o.CheckDevices(t)
}

// cachesTheTruth compares what the pool has cached with what stands in the database.
func (o *world) cachesTheTruth(t *testing.T, after string, asks models.Workspace) {
	t.Helper()
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		Totals   placement.Totals
		Devices  []string
		Decision models.Decision
	}
	of := func(p *pool.Scheduler) (a answer) {
		v, err := p.View(o.Ctx, o.Root)
		if err != nil {
			t.Fatal(err)
		}
		a.Totals = v.Totals
		for _, d := range v.Providers[0].Devices {
			text, err := json.Marshal(d) // with what pointers point to
			if err != nil {
				t.Fatal(err)
			}
			a.Devices = append(a.Devices, string(text))
		}
		pool, err := p.Availability(o.Store.Read(o.Ctx))
		if err != nil {
			t.Fatal(err)
		}
		a.Decision = pool.Decide(models.Project{ID: asks.ProjectID}, asks.Demand, 0)
		return a
	}
	if got, want := of(o.Pool), of(pool.New(o.Store, access, o.Providers)); !reflect.DeepEqual(got, want) {
		t.Fatalf("after %s the pool has cached\n%+v\nbut there is\n%+v", after, got, want)
	}
}

// Whatever comes over a machine, and whoever asks for what meanwhile: no GPU
// is given twice, and what waits for nothing can be placed in the end.
func TestChaosOfMachines(t *testing.T) {
	each(t, func(t *testing.T, o *world) {
		for seed := range uint64(6) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) { o.chaos(t, rand.New(rand.NewPCG(seed, 7))) })
		}
	})
}

func (o *world) chaos(t *testing.T, random *rand.Rand) {
	f := &fleet{random: random, there: [3]bool{true, true, true}}
	o.Enlist(t, pooltest.Devices(f.reports()))
	id := o.Provider(t).ID
	teams := []models.Member{o.NewTeam(t, fmt.Sprint("a", random.Int64())), o.NewTeam(t, fmt.Sprint("b", random.Int64()))}
	var inUse []models.Workspace
	release := func(i int) {
		storetest.InTx(t, o.Store, func(q *store.Queries) error { return o.Pool.Release(q, inUse[i].HolderID) })
		inUse = slices.Delete(inUse, i, i+1)
	}
	steps := map[string]func(){
		"claim": func() {
			d := models.Demand{GPUs: 1 + random.Int64N(2), Cores: 5 + random.Int64N([]int64{30, 96}[random.IntN(2)]), GPUMemoryMiB: 500 + random.Int64N(10_000)}
			if w, decision := o.Claim(t, teams[random.IntN(2)], d); decision.Outcome == models.OutcomeGranted {
				inUse = append(inUse, w)
			}
		},
		"release": func() {
			if len(inUse) > 0 {
				release(random.IntN(len(inUse)))
			}
		},
		"beat": func() { f.obey(o.Heartbeat(t, providers.Heartbeat{Devices: f.reports()})) },
		"a GPU gone or back": func() {
			i := random.IntN(3)
			f.there[i] = !f.there[i]
			o.Heartbeat(t, providers.Heartbeat{Devices: f.reports()})
		},
		"start anew": func() { // instances do not outlive it
			i := random.IntN(3)
			f.cuts[i]++
			o.Heartbeat(t, providers.Heartbeat{Devices: f.reports()})
		},
		"silence": func() {
			o.Clock.Advance(30 * time.Second)
			o.Sweep(t)
		},
		"change of sharing": func() {
			inputs := []providers.DeviceInput{{Sharing: models.SharingExclusive}, {Sharing: models.SharingTimeSlicing}, {Sharing: models.SharingMPS},
				{Sharing: models.SharingTimeSlicing, Mixed: true}, {Sharing: models.SharingMIG, Layout: []string{"3g.40gb", "4g.40gb"}},
				{Sharing: models.SharingMIG, Layout: []string{"1g.10gb", "1g.10gb", "3g.40gb"}}}
			gpu, err := o.Store.Read(o.Ctx).DeviceByUUID(fmt.Sprint("GPU-", random.IntN(3)))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := o.Providers.SetSharing(o.Ctx, o.Root, gpu.ID, inputs[random.IntN(len(inputs))]); err != nil && models.KindOf(err) != models.KindConflict {
				t.Fatal(err)
			}
		},
		"recall": func() {
			if _, err := o.Providers.Recall(o.Ctx, o.Root, id, providers.RecallInput{GraceMinutes: random.Int64N(3)}); err != nil {
				t.Fatal(err)
			}
		},
		"resume": func() {
			if _, err := o.Providers.Resume(o.Ctx, o.Root, id, 0); err != nil {
				t.Fatal(err)
			}
		},
	}
	names := []string{"claim", "claim", "claim", "claim", "release", "release", "release", "beat", "beat", "a GPU gone or back",
		"start anew", "silence", "change of sharing", "change of sharing", "change of sharing", "recall", "resume", "resume", "resume"}
	asks := models.Workspace{ProjectID: teams[0].ProjectID, MemberID: teams[0].ID, UserID: teams[0].UserID,
		Demand: models.Demand{GPUs: 1, Cores: 20, GPUMemoryMiB: 2000}}
	for range 250 {
		name := names[random.IntN(len(names))]
		steps[name]()
		o.keepsGPUs(t, name)
		o.cachesTheTruth(t, name, asks)
	}
	for len(inUse) > 0 {
		release(0)
	}
	steps["resume"]()
	f.there = [3]bool{true, true, true}
	for range 3 {
		steps["beat"]()
	}
	if w, decision := o.Claim(t, teams[0], models.Demand{GPUs: 1, Cores: 5, GPUMemoryMiB: 500}); decision.Outcome != models.OutcomeGranted {
		t.Errorf("the empty pool says %s: %s", decision.Outcome, decision.Explanation)
	} else {
		inUse = append(inUse, w)
		release(0)
	}
}
