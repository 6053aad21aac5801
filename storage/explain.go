package storage

import (
	"context"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/rules"
)

// Explanation is a verdict with the rules that it follows from.
type Explanation struct {
	Path    string
	Member  models.DirectoryUser
	Verdict rules.Verdict
	Applied []rules.Rule // the one that decides about the access first; if the actor may see rules
	Sees    bool         // the actor may see rules
}

// Explain tells what a member may do with a path, and why; member 0 is the actor. Only
// who may see the rules gets those of others, and more than the verdict.
func (s *Service) Explain(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, member int64) (
	e Explanation, err error) {
	q := s.store.Read(ctx)
	if err := s.access.Check(actor, project, policies.ProjectRead); err != nil {
		return e, err
	}
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return e, err
	}
	if e.Member, err = q.DirectoryUserOf(project, actor.User.ID); err != nil {
		return e, err
	}
	sees := s.checkRead(actor, project)
	if member != 0 && member != e.Member.MemberID {
		if sees != nil {
			return e, sees
		}
		if e.Member, err = q.DirectoryUser(project, member); err != nil {
			return e, err
		}
	}
	clean, ok := rules.Clean(string(path))
	if !ok {
		return e, models.Invalid("path", "is not a valid path")
	}
	e.Path = rules.Resolve(e.Member, clean)
	user, err := s.verdicts.Of(ctx, e.Member)
	if err != nil {
		return e, err
	}
	e.Verdict = user.Verdict(e.Path)
	if e.Sees = sees == nil; e.Sees {
		e.Applied = user.Explain(e.Path)
	} else {
		e.Verdict.Rule.ID, e.Verdict.DownloadRule.ID = 0, 0
	}
	return e, nil
}

// Effect is what a change of the rules means for a member, at the path of the rule.
type Effect struct {
	Member        models.MemberView
	Before, After rules.Verdict
}

// RuleChange is a rule that is put, or removed.
type RuleChange struct {
	RuleInput
	Remove bool `json:"remove,omitempty" doc:"remove the rule for the subject instead"`
}

// Preview tells what a change would mean for each member, without making it.
func (s *Service) Preview(ctx context.Context, actor policies.Actor, project int64, in RuleChange, page store.Page) ([]Effect, error) {
	if err := s.access.Check(actor, project, policies.StorageWrite); err != nil {
		return nil, err
	}
	q := s.store.Read(ctx)
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return nil, err
	}
	if err := in.Check(q, project); err != nil {
		return nil, err
	}
	rows, err := q.FileRules(project)
	if err != nil {
		return nil, err
	}
	before := s.verdicts.setOf(project, rows)
	rows = slices.DeleteFunc(slices.Clone(rows), func(r models.FileRule) bool {
		return r.Path == in.Path && r.Subject == in.Subject && r.SubjectID == in.SubjectID
	})
	if !in.Remove {
		rows = append(rows, in.rule(project))
	}
	after := s.verdicts.setOf(project, rows)
	members, err := q.Members(actor.Scope(), project, page)
	if err != nil {
		return nil, err
	}
	return ofMembers(q, project, members, func(m models.MemberView, u models.DirectoryUser) Effect {
		return Effect{m, before.user(u).Verdict(string(in.Path)), after.user(u).Verdict(string(in.Path))}
	})
}

// MemberVerdict is what a member may do with a path.
type MemberVerdict struct {
	Member  models.MemberView
	Verdict rules.Verdict
}

// MemberVerdicts tells what each member may do with a path.
func (s *Service) MemberVerdicts(ctx context.Context, actor policies.Actor, project int64, path models.FilePath,
	page store.Page) ([]MemberVerdict, error) {
	if err := s.checkRead(actor, project); err != nil {
		return nil, err
	}
	clean, ok := rules.Clean(string(path))
	if !ok {
		return nil, models.Invalid("path", "is not a valid path")
	}
	q := s.store.Read(ctx)
	if _, err := q.Project(actor.Scope(), project); err != nil {
		return nil, err
	}
	members, err := q.Members(actor.Scope(), project, page)
	if err != nil {
		return nil, err
	}
	rows, err := q.FileRules(project)
	if err != nil {
		return nil, err
	}
	set := s.verdicts.setOf(project, rows)
	return ofMembers(q, project, members, func(m models.MemberView, u models.DirectoryUser) MemberVerdict {
		return MemberVerdict{m, set.user(u).Verdict(clean)}
	})
}

// ofMembers calls a function for each of some members.
func ofMembers[T any](q *store.Queries, project int64, members []models.MemberView, of func(models.MemberView, models.DirectoryUser) T) (
	[]T, error) {
	ids, views := []int64{}, map[int64]models.MemberView{}
	for _, m := range members {
		ids, views[m.ID] = append(ids, m.ID), m
	}
	users, err := q.DirectoryUsers(project, ids)
	list := make([]T, len(users))
	for i, u := range users {
		list[i] = of(views[u.MemberID], u)
	}
	return list, err
}
