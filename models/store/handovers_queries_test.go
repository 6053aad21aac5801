package store_test

import (
	"testing"
	"time"

	"weir/models/store"
	"weir/models/store/storetest"
)

// The end of a project makes its directories read-only also for those who are not members of it.
func TestDirectoryUserAfterTheEnd(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w, stranger := newWorld(t, s), storetest.User(t, s, "stranger@example.org", false)
		for _, ended := range []bool{false, true} {
			end := s.Now().Add(time.Hour)
			if ended {
				end = s.Now().Add(-time.Hour)
			}
			storetest.InTx(t, s, func(q *store.Queries) error {
				p, err := q.Project(store.AllProjects, w.project.ID)
				if err != nil {
					return err
				}
				p.EndsAt = &end
				return q.UpdateProject(&p)
			})
			for name, id := range map[string]int64{"a member": w.user.ID, "a stranger": stranger.ID} {
				u, err := s.Read(t.Context()).DirectoryUserOf(w.project.ID, id)
				if err != nil || u.Ended != ended || (u.MemberID != 0) != (id == w.user.ID) {
					t.Errorf("%s: %+v, %v; ended: %v", name, u, err, ended)
				}
			}
		}
	})
}
