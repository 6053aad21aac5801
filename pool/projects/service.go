package projects

import (
	"context"
	"log/slog"

	"weir/models"
	"weir/policies"
)

// Service keeps projects, their quotas, roles and members.
type Service struct {
	store  *models.Store
	access *policies.Access
	dirs   Directories
}

// Directories makes the shared directories of projects and members. It may be
// asked again for what exists.
type Directories interface {
	MakeProject(ctx context.Context, project int64) error
	MakeMember(ctx context.Context, project, member int64) error
}

// New keeps projects in store.
func New(store *models.Store, access *policies.Access, dirs Directories) *Service {
	return &Service{store: store, access: access, dirs: dirs}
}

// Editor changes projects within a transaction in which the actor may, and
// which has locked the project that is changed.
type Editor struct {
	access *policies.Access
	q      *models.Queries
	actor  policies.Actor
}

// Within edits projects within somebody else's transaction.
func (s *Service) Within(q *models.Queries, actor policies.Actor) Editor {
	return Editor{access: s.access, q: q, actor: actor}
}

// edit changes one project in a transaction of its own, throughout which the
// actor has the right that the change needs.
func (s *Service) edit(ctx context.Context, actor policies.Actor, project int64, right policies.Right, change func(e Editor, p models.Project) error) error {
	return s.access.Write(ctx, s.store, actor, project, right, func(q *models.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return err
		}
		return change(s.Within(q, actor), p)
	})
}

// MakeProjectDirectories makes those of a new project.
func (s *Service) MakeProjectDirectories(ctx context.Context, project int64) {
	logNotMade(ctx, s.dirs.MakeProject(ctx, project))
}

// MakeMemberDirectory makes that of a new member.
func (s *Service) MakeMemberDirectory(ctx context.Context, project, member int64) {
	logNotMade(ctx, s.dirs.MakeMember(ctx, project, member))
}

// logNotMade logs a directory that could not be made: the change is committed,
// and launching makes the directory again.
func logNotMade(ctx context.Context, err error) {
	if err != nil {
		slog.ErrorContext(ctx, "shared directory not made; the next launch tries again", "err", err)
	}
}
