package store_test

import (
	"maps"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
)

func TestCountDecisions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		storetest.InTx(t, s, func(q *store.Queries) error {
			for _, outcome := range []string{models.OutcomeGranted, models.OutcomeDelayed, models.OutcomeGranted} {
				d := models.DecisionRecord{At: q.Now(), ProjectID: w.project.ID, UserID: w.user.ID, Outcome: outcome, GPUs: 1, Cores: 50}
				if err := q.CreateDecisionRecord(&d); err != nil {
					return err
				}
			}
			return nil
		})
		got, err := s.Read(t.Context()).CountDecisions()
		if want := map[string]int64{models.OutcomeGranted: 2, models.OutcomeDelayed: 1}; err != nil || !maps.Equal(got, want) {
			t.Errorf("%v, %v; want %v", got, err, want)
		}
	})
}
