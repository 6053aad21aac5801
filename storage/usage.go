package storage

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Usage is what the files of a project and of its members use, in bytes.
type Usage struct {
	models.StorageUse
	QuotaMiB int64
	Members  []models.MemberStorage // a page of the present members, by id
}

// Usage returns the storage use of a project and of its members, for everyone who may
// see the project.
func (s *Service) Usage(ctx context.Context, actor policies.Actor, project int64, page store.Page) (u Usage, err error) {
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return u, err
	}
	q := s.store.Read(ctx)
	p, err := q.Project(actor.Scope(), project)
	if err != nil {
		return u, err
	}
	u.QuotaMiB = p.Quota.StorageMiB
	if u.StorageUse, err = q.StorageUse(project); err != nil {
		return u, err
	}
	u.Members, err = q.MembersStorage(project, page)
	return u, err
}
