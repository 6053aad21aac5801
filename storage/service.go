package storage

import (
	"cmp"
	"context"
	"errors"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/rules"
)

// Service changes the rules of projects, and explains them.
type Service struct {
	store    *store.Store
	access   *policies.Access
	verdicts *Verdicts
}

// NewService returns the service of the rules that verdicts are made by.
func NewService(store *store.Store, access *policies.Access, verdicts *Verdicts) *Service {
	return &Service{store, access, verdicts}
}

// RuleInput is a rule about a path. It replaces that for the same subject.
type RuleInput struct {
	Path      models.FilePath     `json:"path" minLength:"1" maxLength:"12288" doc:"percent-encoded path of a directory or file, such as /notebook/5/project_model"`
	Subject   models.FileSubject  `json:"subject" enum:"member,role,project,everyone"`
	SubjectID int64               `json:"subject_id,omitempty" minimum:"0" doc:"ID of the member or role"`
	Access    models.FileAccess   `json:"access" enum:"none,read,write"`
	Download  models.FileDownload `json:"download,omitempty" enum:"inherit,allow,deny" default:"inherit"`
}

// Check validates and normalizes the input for a project.
func (in *RuleInput) Check(q *store.Queries, project int64) error {
	var p models.Problems
	root := rules.ProjectDir(project)
	if path, ok := rules.Clean(string(in.Path)); !ok || !rules.Within(path, root) {
		p.Add("path", "must be %s or a path in it", root)
	} else if in.Path = models.FilePath(path); path == root && in.Access == models.AccessWrite {
		p.Add("access", "cannot be write for %s itself, in which only the portal creates directories", root)
	}
	if in.Download == "" {
		in.Download = models.DownloadInherit
	}
	switch in.Access {
	case models.AccessNone, models.AccessRead, models.AccessWrite:
	default:
		p.Add("access", "must be none, read or write")
	}
	switch in.Download {
	case models.DownloadInherit, models.DownloadAllow, models.DownloadDeny:
	default:
		p.Add("download", "must be inherit, allow or deny")
	}
	if err := in.checkSubject(q, project, &p); err != nil {
		return err
	}
	return p.Err()
}

func (in *RuleInput) checkSubject(q *store.Queries, project int64, p *models.Problems) (err error) {
	switch in.Subject {
	case models.SubjectMember:
		_, err = q.Member(store.AllProjects, project, in.SubjectID)
	case models.SubjectRole:
		_, err = q.Role(store.AllProjects, project, in.SubjectID)
	case models.SubjectProject, models.SubjectEveryone:
		in.SubjectID = 0
	default:
		p.Add("subject", "must be member, role, project or everyone")
	}
	if models.KindOf(err) == models.KindNotFound {
		p.Add("subject_id", "was not found in this project")
		return nil
	}
	return err
}

func (in *RuleInput) rule(project int64) models.FileRule {
	return models.FileRule{ProjectID: project, Path: in.Path, Subject: in.Subject, SubjectID: in.SubjectID, Access: in.Access,
		Download: in.Download}
}

// NamedRule is a rule with the name of its member or role.
type NamedRule struct {
	models.FileRule
	SubjectName string `json:"subject_name,omitempty" doc:"name of the member or role"`
}

// RuleQuery selects rules of a project.
type RuleQuery struct {
	Path  models.FilePath // "": all
	Above bool            // also of the directories above the path
}

func (r RuleQuery) paths() []models.FilePath {
	if r.Path == "" {
		return nil
	}
	list := []models.FilePath{r.Path}
	for dir := string(r.Path); r.Above && dir != "/"; {
		dir, _ = rules.Split(dir)
		list = append(list, models.FilePath(dir))
	}
	return list
}

// List lists rules of a project.
func (s *Service) List(ctx context.Context, actor policies.Actor, project int64, in RuleQuery, page store.Page) ([]NamedRule, error) {
	if err := s.checkRead(actor, project); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return nil, err
	}
	rows, err := q.FileRulesPage(actor.Scope(), project, in.paths(), page)
	if err != nil {
		return nil, err
	}
	return named(q, project, rows)
}

// named adds the names of subjects.
func named(q *store.Queries, project int64, rows []models.FileRule) ([]NamedRule, error) {
	ids := map[models.FileSubject][]int64{}
	for _, r := range rows {
		ids[r.Subject] = append(ids[r.Subject], r.SubjectID)
	}
	members, err1 := q.MemberNames(project, ids[models.SubjectMember])
	roles, err2 := q.RoleNames(project, ids[models.SubjectRole])
	names := map[models.FileSubject]map[int64]string{models.SubjectMember: members, models.SubjectRole: roles}
	list := make([]NamedRule, len(rows))
	for i, r := range rows {
		list[i] = NamedRule{r, names[r.Subject][r.SubjectID]}
	}
	return list, errors.Join(err1, err2)
}

// MayEdit reports whether the actor may change the rules of a project.
func (s *Service) MayEdit(actor policies.Actor, project int64) bool {
	return s.access.May(actor, project, policies.StorageWrite)
}

// checkRead allows to see rules to those who may change them, and to those who may see
// everything.
func (s *Service) checkRead(actor policies.Actor, project int64) error {
	if s.MayEdit(actor, project) {
		return nil
	}
	return s.access.Check(actor, project, policies.StorageRead)
}

// Put creates a rule, or replaces that about the same path for the same subject. It is
// effective on all servers when Put returns; for mounts, at the next start.
func (s *Service) Put(ctx context.Context, actor policies.Actor, project int64, in RuleInput) (r models.FileRule, err error) {
	err = s.access.Write(ctx, s.store, actor, project, policies.StorageWrite, func(q *store.Queries) error {
		if _, err := q.LockProject(actor.Scope(), project); err != nil {
			return err
		}
		if err := in.Check(q, project); err != nil {
			return err
		}
		change := policies.Change{Action: "create", Object: "file rule", Project: project}
		before, err := q.FileRuleAt(project, in.Path, in.Subject, in.SubjectID)
		switch {
		case err == nil:
			change.Action, change.Before = "update", before
		case models.KindOf(err) != models.KindNotFound:
			return err
		default:
			if n, err := q.CountFileRules(project); err != nil || n >= models.MaxFileRules {
				return cmp.Or[error](err, models.Conflict("A project can have at most %d rules.", int64(models.MaxFileRules)))
			}
		}
		r = in.rule(project)
		r.ChangedAt = q.Now()
		if err := q.PutFileRule(&r); err != nil {
			return err
		}
		change.ID, change.After = r.ID, r
		return actor.Audit(q, change)
	})
	return r, err
}

// Delete removes a rule.
func (s *Service) Delete(ctx context.Context, actor policies.Actor, project, id int64) error {
	return s.access.Write(ctx, s.store, actor, project, policies.StorageWrite, func(q *store.Queries) error {
		before, err := q.FileRule(actor.Scope(), project, id)
		if err != nil {
			return err
		}
		if err := q.DeleteFileRule(project, id); err != nil {
			return err
		}
		return actor.Audit(q, policies.Change{Action: "delete", Object: "file rule", ID: id, Project: project, Before: before})
	})
}
