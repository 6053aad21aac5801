package store_test

import (
	"testing"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

// Each time that a deployment is deployed after idleness is a demand of that time.
func TestPastDemandsOfADeployment(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		w, created := newWorld(t, s), clock.Now()
		for range 2 {
			clock.Advance(24 * time.Hour)
			storetest.InTx(t, s, func(q *store.Queries) error {
				return q.RecordEnded(models.Claim{Name: "llm", Holder: models.Holder{Kind: models.HolderDeployment, ProjectID: w.project.ID, MemberID: w.member.ID, UserID: w.user.ID},
					Demand: models.Demand{GPUs: 2, Cores: 50}, RequestedAt: created, StartedAt: new(s.Now())})
			})
		}
		for since, want := range map[time.Time][]time.Duration{created: {24 * time.Hour, 48 * time.Hour}, created.Add(36 * time.Hour): {48 * time.Hour}} {
			got, err := s.Read(t.Context()).PastDemands(since, 10)
			if err != nil || len(got) != len(want) {
				t.Fatalf("%+v, %v; want %v", got, err, want)
			}
			for i, d := range got {
				if d.RequestedAt.Sub(created).Round(time.Second) != want[i] {
					t.Errorf("requested after %s; want %s", d.RequestedAt.Sub(created), want[i])
				}
			}
		}
	})
}

func TestPastDemands(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		clock := storetest.NewClock(s)
		w := newWorld(t, s) // its workspace asks for no GPU
		other := addWorld(t, s, "other")
		demand := func(gpus int64) models.Demand {
			return models.Demand{GPUs: gpus, Cores: 50, GPUMemoryMiB: 1000, GPUModel: "h100", CPUMilli: 1000}
		}
		launch := func(name string, gpus int64, started, ended *time.Time) {
			v := w.workspace
			v.ID, v.Name, v.Demand, v.RequestedAt, v.StartedAt, v.EndedAt, v.Generation = 0, name, demand(gpus), s.Now(), started, ended, 0
			if started != nil {
				v.Generation = 1
			}
			storetest.InTx(t, s, func(q *store.Queries) error { return q.CreateWorkspace(&v, models.Say("Requested.")) })
		}
		decide := func(w *world, outcome string, gpus int64) {
			storetest.InTx(t, s, func(q *store.Queries) error {
				return q.CreateDecisionRecord(&models.DecisionRecord{At: s.Now(), ProjectID: w.project.ID, UserID: w.user.ID, Outcome: outcome,
					GPUs: gpus, Cores: 50, GPUModel: "h100"})
			})
		}
		start, end := clock.Now().Add(time.Hour), clock.Now().Add(3*time.Hour)
		launch("done", 1, &start, &end)
		clock.Advance(time.Hour)
		decide(w, models.OutcomeRefused, 9)
		clock.Advance(23 * time.Hour)
		decide(w, models.OutcomeRefused, 9)     // again
		decide(w, models.OutcomeRefused, 0)     // not for want of GPUs
		decide(w, models.OutcomeGranted, 9)     // a workspace stands for it
		decide(other, models.OutcomeRefused, 9) // somebody else
		clock.Advance(24 * time.Hour)
		decide(w, models.OutcomeRefused, 9) // on another day
		launch("waits", 2, nil, nil)

		got, err := s.Read(t.Context()).PastDemands(time.Time{}, 10)
		if err != nil {
			t.Fatal(err)
		}
		want := []struct {
			gpus   int64
			user   int64
			hours  int // after the first
			starts int64
		}{{1, w.user.ID, 0, 1}, {9, w.user.ID, 1, 0}, {9, other.user.ID, 24, 0}, {2, w.user.ID, 48, 0}, {9, w.user.ID, 48, 0}}
		if len(got) != len(want) {
			t.Fatalf("%d demands: %+v", len(got), got)
		}
		for i, c := range want {
			d := got[i]
			if d.Demand.GPUs != c.gpus || d.UserID != c.user || d.ProjectID == 0 || d.Starts != c.starts ||
				!d.RequestedAt.Equal(start.Add(time.Duration(c.hours-1)*time.Hour)) {
				t.Errorf("demand %d: %+v, want %+v", i, d, c)
			}
		}
		if d := got[0]; d.StartedAt == nil || !d.StartedAt.Equal(start) || d.EndedAt == nil || !d.EndedAt.Equal(end) ||
			d.Demand.Cores != 50 || d.Demand.GPUMemoryMiB != 1000 || d.Demand.GPUModel != "h100" {
			t.Errorf("what is over is %+v", d)
		}
		if d := got[3]; d.StartedAt != nil || d.EndedAt != nil {
			t.Errorf("what waits is %+v", d)
		}
		newest, err := s.Read(t.Context()).PastDemands(time.Time{}, 2)
		if err != nil || len(newest) != 2 || newest[0].Demand.GPUs != 2 || newest[1].Demand.GPUs != 9 {
			t.Errorf("the newest are %+v, %v", newest, err)
		}
	})
}
