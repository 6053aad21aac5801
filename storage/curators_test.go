package storage

import (
	"errors"
	"slices"
	"testing"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/policies"
)

// Curators of a public directory can write in it, by the one verdict, at once.
func TestCurators(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		ctx, root := t.Context(), policies.Actor{User: storetest.User(t, s, "root@example.org", true)}
		verdict := func() models.FileAccess {
			t.Helper()
			user, err := w.verdicts.Of(ctx, w.user(t, w.member))
			if err != nil {
				t.Fatal(err)
			}
			if other := user.Verdict("/public_dataset/a").Access; other != models.AccessRead {
				t.Errorf("another directory: %s", other)
			}
			return user.Verdict("/public_model/a").Access
		}
		row, err := s.Read(ctx).Member(store.AllProjects, w.project, w.member)
		if err != nil || verdict() != models.AccessRead {
			t.Fatalf("%v, %s", err, verdict())
		}
		user, err1 := s.Read(ctx).User(row.UserID)
		project, err2 := s.Read(ctx).Project(store.AllProjects, w.project)
		if err := errors.Join(err1, err2); err != nil {
			t.Fatal(err)
		}
		for _, in := range []CuratorInput{{Directory: "/public_model", Email: user.Email}, {Directory: "/public_model", ProjectName: project.Name}} {
			if _, err := w.AddCurator(ctx, w.managing, in); models.KindOf(err) != models.KindForbidden {
				t.Errorf("a manager: %v", err)
			}
			c, err := w.AddCurator(ctx, root, in)
			if err != nil || verdict() != models.AccessWrite {
				t.Fatalf("%+v: %v, %s", in, err, verdict())
			}
			mounts, _, err := w.dirs.EnsureMounts(ctx, w.user(t, w.member))
			if err != nil || !slices.ContainsFunc(mounts, func(m models.Mount) bool { return m.Target == "/public_model" && !m.ReadOnly }) {
				t.Errorf("%+v, %v", mounts, err)
			}
			if _, err := w.AddCurator(ctx, root, in); models.KindOf(err) != models.KindConflict {
				t.Errorf("twice: %v", err)
			}
			if list, err := w.Curators(ctx, root, store.Page{}); err != nil || len(list) != 1 || list[0].ID != c.ID {
				t.Errorf("%+v, %v", list, err)
			}
			if err := w.RemoveCurator(ctx, root, c.ID); err != nil || verdict() != models.AccessRead {
				t.Errorf("%v, %s", err, verdict())
			}
		}
		for _, in := range []CuratorInput{{Directory: "/public_models", ProjectName: project.Name}, {Directory: "/public_model"}, {Directory: "/public_model", ProjectName: project.Name, Email: user.Email}, {Directory: "/notebook", ProjectName: project.Name},
			{Directory: "/public_model", Email: "nobody@example.org"}, {Directory: "/public_model", ProjectName: "no project"}} {
			if _, err := w.AddCurator(ctx, root, in); models.KindOf(err) != models.KindInvalid {
				t.Errorf("%+v: %v", in, err)
			}
		}
	})
}
