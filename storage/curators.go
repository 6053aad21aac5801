package storage

import (
	"context"
	"slices"
	"strings"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/rules"
)

// CuratorInput names a new curator of a public directory, a user or a project.
type CuratorInput struct {
	Directory   string `json:"directory" doc:"public directory, such as /public_model"`
	Email       string `json:"email,omitempty" maxLength:"254" doc:"email address of a user, who curates in every project"`
	ProjectName string `json:"project_name,omitempty" maxLength:"100" doc:"exact name of a project, whose members curate in it; instead of email"`
}

func (in CuratorInput) curator(q *store.Queries) (c models.Curator, err error) {
	c = models.Curator{Directory: in.Directory, CreatedAt: q.Now()}
	if !slices.Contains(rules.PublicDirs(), in.Directory) {
		return c, models.Invalid("directory", "must be one of %s", strings.Join(rules.PublicDirs(), ", "))
	}
	if (in.Email == "") == (in.ProjectName == "") {
		return c, models.Invalid("email", "must be set, or else the name of a project")
	}
	if in.Email != "" {
		u, err := q.PersonByEmail(in.Email)
		c.UserID = &u.ID
		return c, err
	}
	p, err := q.ProjectByName(store.AllProjects, strings.TrimSpace(in.ProjectName))
	c.ProjectID = &p.ID
	return c, models.NotFoundAs(err, models.Invalid("project_name", "is not the name of a project"))
}

// Curators lists the curators of the public directories.
func (s *Service) Curators(ctx context.Context, actor policies.Actor, page store.Page) ([]models.CuratorView, error) {
	if err := s.access.Check(actor, policies.Platform, policies.CuratorRead); err != nil {
		return nil, err
	}
	return s.store.Read(ctx).Curators(page)
}

// Curator returns a curator to who may remove it.
func (s *Service) Curator(ctx context.Context, actor policies.Actor, id int64) (c models.CuratorView, err error) {
	if err := s.access.Check(actor, policies.Platform, policies.CuratorWrite); err != nil {
		return c, err
	}
	return s.store.Read(ctx).Curator(id)
}

// AddCurator lets a user or a project write in a public directory: at once through the
// service, and in workspaces as their mounts follow.
func (s *Service) AddCurator(ctx context.Context, actor policies.Actor, in CuratorInput) (c models.CuratorView, err error) {
	err = s.access.Write(ctx, s.store, actor, policies.Platform, policies.CuratorWrite, func(q *store.Queries) error {
		made, err := in.curator(q)
		if err != nil {
			return err
		}
		if err := q.CreateCurator(&made); err != nil {
			return err
		}
		if c, err = q.Curator(made.ID); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "create", Object: "curator", ID: c.ID, After: auditCurator(made)})
	})
	return c, err
}

func auditCurator(c models.Curator) map[string]any {
	return map[string]any{"directory": c.Directory, "user_id": c.UserID, "project_id": c.ProjectID}
}

// RemoveCurator ends it.
func (s *Service) RemoveCurator(ctx context.Context, actor policies.Actor, id int64) error {
	return s.access.Write(ctx, s.store, actor, policies.Platform, policies.CuratorWrite, func(q *store.Queries) error {
		c, err := q.Curator(id)
		if err != nil {
			return err
		}
		if err := q.DeleteCurator(c.Curator); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "curator", ID: id, Before: auditCurator(c.Curator)})
	})
}
