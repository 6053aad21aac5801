package files

import (
	"context"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/rules"
)

// ProjectFiles describes the files of a project as a whole.
type ProjectFiles struct {
	Project string          // name
	Home    models.FilePath // own directory; "" for who is not a member
	Storage Allowance
	Own     *Allowance // nil for who is not a member
}

// ProjectFiles describes a project to who can read files of it.
func (s *Service) ProjectFiles(ctx context.Context, actor policies.Actor, project int64) (p ProjectFiles, err error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return p, err
	}
	q := s.Store.Read(ctx)
	row, err := q.Project(store.AllProjects, project)
	if err != nil {
		return p, err
	}
	p.Project = row.Name
	if p.Storage, err = projectAllowance(q, row); err != nil || v.user.MemberID == 0 {
		return p, err
	}
	p.Home = models.FilePath(rules.MemberDir(project, v.user.MemberID))
	m, err := q.MemberView(store.AllProjects, project, v.user.MemberID)
	if err != nil {
		return p, err
	}
	own, err := memberAllowance(q, m)
	p.Own = &own
	return p, err
}
