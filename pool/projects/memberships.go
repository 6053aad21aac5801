package projects

import (
	"context"
	"errors"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/pool/quota"
)

// Membership is a user's membership in a project, with the project.
type Membership struct {
	Project models.Project
	Member  models.MemberView
	Use     quota.Use
	// CanLaunch is set while the project is active and the role permits to launch.
	CanLaunch bool
}

// Memberships lists the projects of a user with the use and its limits there.
func (s *Service) Memberships(ctx context.Context, actor policies.Actor, user int64) (list []Membership, err error) {
	if err := s.access.CheckOwned(actor, user, policies.Platform, policies.UserRead); err != nil {
		return nil, err
	}
	err = s.store.Snapshot(ctx, func(q *store.Queries) error {
		list, err = membershipsOf(q, user)
		return err
	})
	return list, err
}

// membershipsOf needs a fixed number of queries.
func membershipsOf(q *store.Queries, user int64) ([]Membership, error) {
	memberships, err := q.MembershipsOf(user, q.Now())
	if err != nil || len(memberships) == 0 {
		return nil, err
	}
	ids := models.Map(memberships, func(m models.MemberView) int64 { return m.ProjectID })
	projects, err1 := q.ProjectsByID(ids)
	inUse, err2 := q.InUseByProjects(ids)
	own, err3 := q.InUseByUser(user)
	list := make([]Membership, len(memberships))
	for i, m := range memberships {
		p := projects[m.ProjectID]
		list[i] = Membership{Project: p, Member: m, CanLaunch: p.Active(q.Now()) && m.Permits().Contains(models.WorkspaceLaunch),
			Use: quota.Use{Quota: p.Quota, InUseByProject: inUse[p.ID], Limit: m.Limit, InUseByMember: own[m.ID]}}
	}
	return list, errors.Join(err1, err2, err3)
}
