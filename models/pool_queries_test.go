package models_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"weir/models"
	"weir/models/modelstest"
)

// A page has the requested number of rows, up to the maximum.
func TestPageSize(t *testing.T) {
	s := modelstest.Open(t, "sqlite")
	modelstest.InTx(t, s, func(q *models.Queries) error {
		for i := range models.PageSize + 1 {
			if err := q.CreateUser(&models.User{Email: fmt.Sprintf("u%d@example.org", i), Name: "u", Version: 1, CreatedAt: q.Now()}); err != nil {
				return err
			}
		}
		return nil
	})
	for limit, want := range map[int]int{0: 50, 7: 7, models.PageSize: models.PageSize, 1000: models.PageSize} {
		if users, err := s.Read(t.Context()).Users("", models.Page{Limit: limit}); err != nil || len(users) != want {
			t.Errorf("limit %d: %d users, %v; want %d", limit, len(users), err, want)
		}
	}
}

// Decisions of other projects do not fill the list of a small project.
func TestDecisionsInScope(t *testing.T) {
	modelstest.Each(t, func(t *testing.T, s *models.Store) {
		small, busy := addWorld(t, s, "small"), addWorld(t, s, "busy")
		modelstest.InTx(t, s, func(q *models.Queries) error {
			for i := range 40 {
				d := models.DecisionRecord{At: q.Now(), ProjectID: busy.project.ID, UserID: busy.user.ID, Outcome: models.OutcomeGranted, GPUs: 1, Cores: int64(i)}
				if i < 3 {
					d.ProjectID, d.UserID = small.project.ID, small.user.ID
				}
				if err := q.CreateDecisionRecord(&d); err != nil {
					return err
				}
			}
			return nil
		})
		for name, c := range map[string]struct {
			scope models.Scope
			want  []int64 // by their cores
		}{"its own": {small.scope(), []int64{2, 1, 0}}, "the newest": {busy.scope(), []int64{39, 38, 37, 36, 35}},
			"all": {models.AllProjects, []int64{39, 38, 37, 36, 35}}, "none": {models.Scope{}, nil}} {
			list, err := s.Read(t.Context()).DecisionsIn(c.scope, 5)
			var got []int64
			for _, d := range list {
				got = append(got, d.Cores)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, %v; want %v", name, got, err, c.want)
			}
		}
	})
}

// share creates a share of the workspace with an announced end.
func (w *world) share(t *testing.T, device int64, ends *time.Time) models.Share {
	t.Helper()
	share := models.Share{DeviceID: device, WorkspaceID: w.workspace.ID, ProjectID: w.project.ID, UserID: w.user.ID, Cores: 10, MemoryMiB: 10,
		Enforcement: models.EnforcedAdvisory, From: w.store.Now(), EndsAt: ends}
	modelstest.InTx(t, w.store, func(q *models.Queries) error { return q.CreateShare(&share) })
	return share
}

func TestSharesEndingOtherwise(t *testing.T) {
	modelstest.Each(t, func(t *testing.T, s *models.Store) {
		modelstest.NewClock(s)
		w, device := newWorld(t, s), addDevice(t, s)
		d, err := s.Read(t.Context()).Device(device)
		if err != nil {
			t.Fatal(err)
		}
		soon, late := s.Now().Add(time.Hour), s.Now().Add(2*time.Hour)
		endless, ended, ending := w.share(t, device, nil).ID, w.share(t, device, ago(s, time.Minute)).ID, w.share(t, device, &soon).ID
		for _, c := range []struct {
			name string
			at   *time.Time
			want []int64
		}{{"none", nil, []int64{ending}}, {"the same", &soon, []int64{endless}}, {"later", &late, []int64{endless, ending}}} {
			shares, err := s.Read(t.Context()).SharesWithOtherEnd(d.ProviderID, c.at)
			var got []int64
			for _, share := range shares {
				got = append(got, share.ID)
			}
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%s: %v, %v; want %v (not %d, whose end has come)", c.name, got, err, c.want, ended)
			}
		}
	})
}

// Processes on a GPU are deleted with the share, but not on other GPUs.
func TestEndedSharesLeaveNoProcesses(t *testing.T) {
	modelstest.Each(t, func(t *testing.T, s *models.Store) {
		w, parent := newWorld(t, s), addDevice(t, s)
		var instance, other models.Device
		modelstest.InTx(t, s, func(q *models.Queries) error {
			d, err := q.Device(parent)
			if err != nil {
				return err
			}
			instance, other = d, d
			instance.ID, instance.UUID, instance.ParentID = 0, "MIG-1", &parent
			other.ID, other.UUID = 0, "GPU-other"
			for _, d := range []*models.Device{&instance, &other} {
				if err := q.CreateDevice(d); err != nil {
					return err
				}
			}
			var states []models.DeviceState
			for _, id := range []int64{parent, instance.ID, other.ID} {
				states = append(states, models.DeviceState{DeviceID: id, At: q.Now(), Utilisation: 5, Processes: []models.GPUProcess{{PID: 7, Name: "train.py"}}})
			}
			return q.SaveStates(states)
		})
		w.share(t, instance.ID, nil)
		modelstest.InTx(t, s, func(q *models.Queries) error { return q.EndShares(w.workspace.ID, q.Now()) })
		states, err := s.Read(t.Context()).DeviceStates()
		if err != nil || len(states) != 3 || len(states[parent].Processes)+len(states[instance.ID].Processes) > 0 || len(states[other.ID].Processes) != 1 ||
			states[parent].Utilisation != 5 {
			t.Errorf("%+v, %v", states, err)
		}
	})
}
