package storage

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
	"weir/storage/rules"
)

// world is a project with a manager and a member, and another project.
type world struct {
	*Service
	dirs             *Directories
	store            *store.Store
	project, role    int64
	manager, member  int64
	managing, acting policies.Actor
}

func newWorld(t *testing.T, s *store.Store) *world {
	t.Helper()
	access, err := policies.NewAccess()
	if err != nil {
		t.Fatal(err)
	}
	verdicts, err := NewVerdicts(s)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Service: NewService(s, access, verdicts), store: s}
	if w.dirs, err = New(t.TempDir(), 0, 0, verdicts); err != nil {
		t.Fatal(err)
	}
	storetest.InTx(t, s, func(q *store.Queries) error {
		p := models.Project{Name: "vision", StartsAt: q.Now(), Version: 1, CreatedAt: q.Now()}
		if err := q.CreateProject(&p); err != nil {
			return err
		}
		w.project = p.ID
		return nil
	})
	_, w.manager, w.managing = w.join(t, "manager")
	w.role, w.member, w.acting = w.join(t, "member")
	return w
}

// join adds a member with a role of its own.
func (w *world) join(t *testing.T, permission string) (role, member int64, actor policies.Actor) {
	t.Helper()
	u := storetest.User(t, w.store, fmt.Sprintf("%s@example.org", permission), false)
	storetest.InTx(t, w.store, func(q *store.Queries) error {
		r := models.Role{ProjectID: w.project, Name: permission, Permission: permission, Version: 1, CreatedAt: q.Now()}
		if err := q.CreateRole(&r); err != nil {
			return err
		}
		m := models.Member{ProjectID: w.project, UserID: u.ID, RoleID: r.ID, Version: 1, CreatedAt: q.Now()}
		err := q.CreateMember(&m)
		role, member = r.ID, m.ID
		return err
	})
	memberships, err := w.store.Read(t.Context()).MembershipsOf(u.ID, w.store.Now())
	if err != nil {
		t.Fatal(err)
	}
	return role, member, policies.Actor{User: u, Grants: policies.GrantsOf(memberships), At: w.store.Now()}
}

func (w *world) user(t *testing.T, member int64) models.DirectoryUser {
	t.Helper()
	u, err := w.store.Read(t.Context()).DirectoryUser(w.project, member)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func (w *world) put(t *testing.T, in RuleInput) models.FileRule {
	t.Helper()
	r, err := w.Put(t.Context(), w.managing, w.project, in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (w *world) model() models.FilePath {
	return models.FilePath(rules.ProjectDir(w.project) + "/project_model")
}

func TestRulesAreEffectiveAtOnce(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		access := func() models.FileAccess {
			t.Helper()
			e, err := w.Explain(t.Context(), w.acting, w.project, w.model()+"/a\xff", 0)
			if err != nil {
				t.Fatal(err)
			}
			return e.Verdict.Access
		}
		if access() != models.AccessWrite {
			t.Error("a member cannot write the project's directory")
		}
		in := RuleInput{Path: w.model() + "/a\xff", Subject: models.SubjectRole, SubjectID: w.role, Access: models.AccessRead}
		first := w.put(t, in)
		if access() != models.AccessRead {
			t.Error("the rule has no effect")
		}
		in.Access, in.Download = models.AccessNone, models.DownloadDeny
		if again := w.put(t, in); again.ID != first.ID || access() != models.AccessNone {
			t.Errorf("%+v does not replace %+v", again, first)
		}
		list, err := w.List(t.Context(), w.managing, w.project, RuleQuery{Path: in.Path}, store.Page{})
		if err != nil || len(list) != 1 || list[0].Access != models.AccessNone || list[0].Path != in.Path {
			t.Errorf("%+v, %v", list, err)
		}
		if err := w.Delete(t.Context(), w.managing, w.project, first.ID); err != nil || access() != models.AccessWrite {
			t.Errorf("the rule is still effective, %v", err)
		}
		if err := w.Delete(t.Context(), w.managing, w.project, first.ID); models.KindOf(err) != models.KindNotFound {
			t.Error("deleted twice")
		}
		entries, err := s.Read(t.Context()).Audit(store.AuditFilter{ProjectID: w.project}, store.Page{})
		if err != nil || len(entries) != 3 || entries[0].Action != "delete" || entries[1].Action != "update" || !strings.Contains(entries[1].Before, "a%FF") {
			t.Errorf("%+v, %v", entries, err)
		}
	})
}

func TestRulesEndWithTheirRole(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		storetest.InTx(t, s, func(q *store.Queries) error {
			r := models.Role{ProjectID: w.project, Name: "empty", Permission: "viewer", Version: 1, CreatedAt: q.Now()}
			if err := q.CreateRole(&r); err != nil {
				return err
			}
			rule := models.FileRule{ProjectID: w.project, Path: w.model(), Subject: models.SubjectRole, SubjectID: r.ID, Access: models.AccessNone, Download: models.DownloadInherit, ChangedAt: q.Now()}
			if err := q.PutFileRule(&rule); err != nil {
				return err
			}
			return q.DeleteRole(store.AllProjects, w.project, r.ID)
		})
		if list, err := s.Read(t.Context()).FileRules(w.project); err != nil || len(list) != 0 {
			t.Errorf("%+v, %v", list, err)
		}
	})
}

func TestWhoMayChangeRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		good := RuleInput{Path: w.model(), Subject: models.SubjectProject, Access: models.AccessRead}
		stranger := policies.Actor{User: storetest.User(t, s, "stranger@example.org", false)}
		for _, c := range []struct {
			actor policies.Actor
			want  models.Kind
		}{{w.acting, models.KindForbidden}, {stranger, models.KindNotFound}, {policies.Actor{}, models.KindUnauthenticated}} {
			_, err1 := w.Put(t.Context(), c.actor, w.project, good)
			_, err2 := w.List(t.Context(), c.actor, w.project, RuleQuery{}, store.Page{})
			_, err3 := w.Preview(t.Context(), c.actor, w.project, RuleChange{RuleInput: good}, store.Page{})
			_, err4 := w.Explain(t.Context(), c.actor, w.project, w.model(), w.manager)
			for i, err := range []error{err1, err2, err3, err4, w.Delete(t.Context(), c.actor, w.project, 1)} {
				if models.KindOf(err) != c.want {
					t.Errorf("%s, call %d: %v", c.actor.Label(), i+1, err)
				}
			}
		}
		e, err := w.Explain(t.Context(), w.acting, w.project, w.model(), w.member)
		if err != nil || e.Verdict.Access != models.AccessWrite || e.Applied != nil {
			t.Errorf("%+v, %v", e, err)
		}
	})
}

func TestInvalidRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		root := models.FilePath(rules.ProjectDir(w.project))
		for name, in := range map[string]RuleInput{
			"path":       {Path: "/notebook/999/project_model", Subject: models.SubjectProject, Access: models.AccessRead},
			"path ":      {Path: w.model() + "/../x", Subject: models.SubjectProject, Access: models.AccessRead},
			"path  ":     {Path: w.model() + "/\x00", Subject: models.SubjectProject, Access: models.AccessRead},
			"path   ":    {Path: "/public_model", Subject: models.SubjectProject, Access: models.AccessRead},
			"access":     {Path: root, Subject: models.SubjectProject, Access: models.AccessWrite},
			"access ":    {Path: root, Subject: models.SubjectProject, Access: "all"},
			"download":   {Path: root, Subject: models.SubjectProject, Access: models.AccessRead, Download: "yes"},
			"subject":    {Path: root, Subject: "user", Access: models.AccessRead},
			"subject_id": {Path: root, Subject: models.SubjectRole, SubjectID: 999, Access: models.AccessRead},
		} {
			_, err := w.Put(t.Context(), w.managing, w.project, in)
			var e *models.Error
			if !errors.As(err, &e) || e.Kind != models.KindInvalid || len(e.Fields) != 1 || e.Fields[0].Name != strings.TrimSpace(name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

func TestPreviewShowsTheEffect(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		in := RuleInput{Path: w.model(), Subject: models.SubjectRole, SubjectID: w.role, Access: models.AccessRead, Download: models.DownloadDeny}
		preview := func(remove bool) []Effect {
			t.Helper()
			list, err := w.Preview(t.Context(), w.managing, w.project, RuleChange{in, remove}, store.Page{})
			if err != nil || len(list) != 2 {
				t.Fatalf("%+v, %v", list, err)
			}
			slices.SortFunc(list, func(a, b Effect) int { return int(a.Member.ID - b.Member.ID) })
			return list
		}
		list := preview(false)
		if m := list[0]; m.Member.ID != w.manager || m.Before.Access != models.AccessWrite || m.After.Access != models.AccessWrite || !m.After.Download {
			t.Errorf("manager: %+v", m)
		}
		if m := list[1]; m.Member.ID != w.member || m.Before.Access != models.AccessWrite || m.After.Access != models.AccessRead || m.After.Download {
			t.Errorf("member: %+v", m)
		}
		if rows, err := s.Read(t.Context()).FileRules(w.project); err != nil || len(rows) != 0 {
			t.Errorf("the preview has changed the rules: %+v, %v", rows, err)
		}
		rule := w.put(t, in)
		if m := preview(true)[1]; m.Before.Access != models.AccessRead || m.After.Access != models.AccessWrite {
			t.Errorf("removed: %+v", m)
		}
		e, err := w.Explain(t.Context(), w.managing, w.project, w.model()+"/x", w.member)
		if err != nil || e.Verdict.Rule.ID != rule.ID || len(e.Applied) != 3 || e.Applied[0].ID != rule.ID || !e.Applied[1].Layout {
			t.Errorf("%+v, %v", e, err)
		}
	})
}
