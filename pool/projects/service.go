package projects

import (
	"context"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
)

// Service manages projects, their quotas, roles and members.
type Service struct {
	store  *store.Store
	access *policies.Access
	dirs   Directories
	pool   *Capacity

	// InvitationLifetime is how long invitations are valid; 0 is
	// DefaultInvitationLifetime. Set it before use.
	InvitationLifetime time.Duration
}

// Directories creates the shared directories of projects and members, if they do
// not exist.
type Directories interface {
	MakeProject(ctx context.Context, project int64) error
	MakeMember(ctx context.Context, project, member int64) error
}

// New returns the service. Quotas that are left open are filled from the pool.
func New(store *store.Store, access *policies.Access, dirs Directories, pool *Capacity) *Service {
	return &Service{store: store, access: access, dirs: dirs, pool: pool}
}

// Editor changes a project within a transaction that has checked the actor's right
// and locked the project.
type Editor struct {
	access *policies.Access
	q      *store.Queries
	actor  policies.Actor
	pool   *Capacity

	invitationLifetime time.Duration
}

// Within returns an Editor for a transaction.
func (s *Service) Within(q *store.Queries, actor policies.Actor) Editor {
	return Editor{access: s.access, q: q, actor: actor, pool: s.pool, invitationLifetime: s.InvitationLifetime}
}

// edit changes a project in a transaction in which the actor has a right.
func (s *Service) edit(ctx context.Context, actor policies.Actor, project int64, right policies.Right,
	change func(e Editor, p models.Project) error) error {
	return s.access.Write(ctx, s.store, actor, project, right, func(q *store.Queries) error {
		p, err := q.LockProject(actor.Scope(), project)
		if err != nil {
			return err
		}
		return change(s.Within(q, actor), p)
	})
}

// MakeProjectDirectories creates the directories of a new project.
func (s *Service) MakeProjectDirectories(ctx context.Context, project int64) {
	s.logNotMade(ctx, s.dirs.MakeProject(ctx, project))
}

// MakeMemberDirectory creates the directory of a new member.
func (s *Service) MakeMemberDirectory(ctx context.Context, project, member int64) {
	s.logNotMade(ctx, s.dirs.MakeMember(ctx, project, member))
}

// logNotMade logs an error. The change is committed, and the next launch creates
// the directory.
func (s *Service) logNotMade(ctx context.Context, err error) {
	if err != nil {
		s.store.Log().ErrorContext(ctx, "shared directory not created; the next launch tries again", "err", err)
	}
}
