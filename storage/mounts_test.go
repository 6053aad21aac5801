package storage

import (
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"weir/models"
	"weir/models/store"
	"weir/models/store/storetest"
	"weir/storage/rules"
)

// tree is directories and files by their paths.
type tree map[string]rules.Kind

func genTree(t *rapid.T) tree {
	tr := tree{}
	for _, dir := range []string{"/public_algorithm", "/public_model", "/public_dataset", "/notebook/5"} {
		tr[dir] = rules.Directory
	}
	for _, name := range []string{"project_algorithm", "project_model", "project_dataset", "1", "2", "3", "4", "9"} {
		tr["/notebook/5/"+name] = rules.Directory
	}
	for range rapid.IntRange(0, 12).Draw(t, "entries") {
		parts := strings.Split(genPath(t), "/")
		for i := 4; i <= len(parts); i++ {
			path := strings.Join(parts[:i], "/")
			if tr[path] == rules.Missing {
				tr[path] = rapid.SampledFrom([]rules.Kind{rules.Directory, rules.Directory, rules.File}).Draw(t, "kind")
			}
			if tr[path] == rules.File {
				break
			}
		}
	}
	return tr
}

// mounted is the access that a workspace with these mounts has to a path.
func mounted(mounts []rules.Mount, path string) models.FileAccess {
	access, best := models.AccessNone, ""
	for _, m := range mounts {
		if rules.Within(path, m.Path) && len(m.Path) > len(best) {
			access, best = m.Access, m.Path
		}
	}
	return access
}

// In a random tree every path has the access of its verdict, except those that are
// listed, and fewer mounts would not do.
func TestMountsExpressTheVerdicts(t *testing.T) {
	d := newTestDecider(t)
	rapid.Check(t, func(t *rapid.T) {
		rows, u, tr := genRules(t), genUser(t), genTree(t)
		if u.MemberID == 0 {
			u.MemberID = 1
		}
		set := rules.NewSet(5, rows)
		verdict := func(path string) rules.Verdict { return d.of(set, u, path) }
		mounts, limits := rules.PlanMounts(set.Boundaries(u), verdict, func(path string) rules.Kind { return tr[path] })
		for i, m := range mounts {
			if tr[m.Path] != rules.Directory || slices.ContainsFunc(mounts[i+1:], func(o rules.Mount) bool { return rules.Within(m.Path, o.Path) }) {
				t.Fatalf("%+v is no directory, or comes after what is in it", m)
			}
		}
		for path := range tr {
			if want, got := verdict(path).Access, mounted(mounts, path); got != want && !rules.Limited(limits, path) {
				t.Fatalf("%q: mounted %s, the verdict is %s, and it is not listed: %+v %+v", path, got, want, mounts, limits)
			}
		}
		for _, l := range limits {
			v := verdict(string(l.Path))
			if l.Mounted != mounted(mounts, string(l.Path)) || l.Access != v.Access || l.Reason == rules.OfDownload && v.Download || l.Reason != rules.OfDownload && l.Mounted == v.Access {
				t.Fatalf("%+v, but the verdict is %+v", l, v)
			}
		}
		needed := 0
		for i, m := range mounts {
			above := ""
			for _, o := range mounts[:i] {
				if rules.Within(m.Path, o.Path) && len(o.Path) > len(above) {
					above = o.Path
				}
			}
			if parent, _ := rules.Split(m.Path); above != "" && mounted(mounts[:i], above) == models.AccessWrite && m.Access != models.AccessWrite && parent != above {
				t.Fatalf("%s can be moved, and with it %s: %+v", parent, m.Path, mounts)
			}
			if keeps := slices.ContainsFunc(mounts[i+1:], func(o rules.Mount) bool { return rules.Within(o.Path, m.Path) && o.Access != models.AccessWrite }); above == "" || mounted(mounts[:i], above) != m.Access {
				needed++
			} else if m.Access != models.AccessWrite || !keeps {
				t.Fatalf("%+v is not needed: %+v", m, mounts)
			}
		}
		if fewer := fewestMounts(tr, func(path string) models.FileAccess { return mounted(mounts, path) }, needed); fewer < needed {
			t.Fatalf("%d mounts give the same as these %d: %+v", fewer, needed, mounts)
		}
	})
}

// Where the path of a mount is resolved later, only directories of the layout are mounted.
// What the rules give less than what is mounted above is hidden, so nothing has more
// access than it should.
func TestReplaceableDirectoriesAreNotMounted(t *testing.T) {
	d := newTestDecider(t)
	const dir = "/notebook/5/project_model/a"
	secret := rules.NewSet(5, []models.FileRule{{ID: 1, ProjectID: 5, Path: dir, Subject: models.SubjectProject, Access: models.AccessNone}})
	ada := models.DirectoryUser{ProjectID: 5, MemberID: 1}
	mounts, _ := rules.PlanMounts(secret.Boundaries(ada), func(path string) rules.Verdict { return d.of(secret, ada, path) }, func(path string) rules.Kind {
		if path == dir {
			return rules.Replaceable
		}
		return rules.Directory
	})
	if !slices.Contains(mounts, rules.Mount{Path: dir, Access: models.AccessNone}) {
		t.Errorf("%s is not hidden: %+v", dir, mounts)
	}
	rapid.Check(t, func(t *rapid.T) {
		rows, u, tr := genRules(t), genUser(t), genTree(t)
		if u.MemberID == 0 {
			u.MemberID = 1
		}
		for path := range tr {
			if strings.Count(path, "/") > 3 && tr[path] == rules.Directory {
				tr[path] = rules.Replaceable
			}
		}
		set := rules.NewSet(5, rows)
		verdict := func(path string) rules.Verdict { return d.of(set, u, path) }
		mounts, limits := rules.PlanMounts(set.Boundaries(u), verdict, func(path string) rules.Kind { return tr[path] })
		for _, m := range mounts {
			if tr[m.Path] == rules.Replaceable && m.Access != models.AccessNone {
				t.Fatalf("%+v is mounted: %+v", m, mounts)
			}
		}
		for path, kind := range tr {
			want, got := verdict(path).Access, mounted(mounts, path)
			if got != want && !rules.Limited(limits, path) || kind == rules.Replaceable && !want.Includes(got) {
				t.Fatalf("%q: mounted %s, the verdict is %s: %+v %+v", path, got, want, mounts, limits)
			}
		}
	})
}

// fewestMounts is the size of the smallest set of mounts, below a number, that gives
// every directory an access: all sets of directories are tried.
func fewestMounts(tr tree, access func(string) models.FileAccess, below int) int {
	var dirs []string
	for path, kind := range tr {
		if kind == rules.Directory {
			dirs = append(dirs, path)
		}
	}
	if len(dirs) > 16 {
		return below
	}
	for set := range uint(1) << len(dirs) {
		if n := bits.OnesCount(set); n < below && slices.IndexFunc(dirs, func(dir string) bool { return nearest(dirs, set, access, dir) != access(dir) }) < 0 {
			below = n
		}
	}
	return below
}

func nearest(dirs []string, set uint, access func(string) models.FileAccess, path string) models.FileAccess {
	best, found := "", models.AccessNone
	for i, dir := range dirs {
		if set&(1<<i) != 0 && rules.Within(path, dir) && len(dir) > len(best) {
			best, found = dir, access(dir)
		}
	}
	return found
}

// The mounts of directories on disk, with the home.
func TestMountPlan(t *testing.T) {
	storetest.Each(t, func(t *testing.T, s *store.Store) {
		w := newWorld(t, s)
		mounts, _, err := w.dirs.EnsureMounts(t.Context(), w.user(t, w.member))
		if err != nil || len(mounts) != 9 {
			t.Fatalf("%+v, %v", mounts, err)
		}
		for _, m := range mounts {
			if info, err := os.Stat(m.Source); err != nil || !info.IsDir() {
				t.Errorf("%s: %v", m.Source, err)
			}
		}
		own := rules.MemberDir(w.project, w.member)
		for _, dir := range []string{own + "/kept", own + "/hidden"} {
			if err := os.Mkdir(filepath.Join(w.dirs.Root(), dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink("/etc", filepath.Join(w.dirs.Root(), own, "link")); err != nil {
			t.Fatal(err)
		}
		for path, access := range map[string]models.FileAccess{own + "/kept": models.AccessRead, own + "/hidden": models.AccessNone, own + "/gone": models.AccessRead, own + "/link/ssl": models.AccessRead} {
			w.put(t, RuleInput{Path: models.FilePath(path), Subject: models.SubjectProject, Access: access})
		}
		plan, err := w.dirs.MountPlan(t.Context(), w.user(t, w.member))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{own + "/kept": own + "/kept", rules.HomeDir + "/kept": own + "/kept", own + "/hidden": EmptyDir, rules.HomeDir + "/hidden": EmptyDir, rules.HomeDir: own}
		for target, source := range want {
			at := slices.IndexFunc(plan.Mounts, func(m models.Mount) bool { return m.Target == target })
			if at < 0 || plan.Mounts[at].Source != filepath.Join(w.dirs.Root(), source) || plan.Mounts[at].ReadOnly != (target != rules.HomeDir) {
				t.Errorf("%s: %+v", target, plan.Mounts)
			}
		}
		if len(plan.Mounts) != 9+4 || len(plan.Limitations) != 2 {
			t.Errorf("%d mounts, limitations %+v", len(plan.Mounts), plan.Limitations)
		}
	})
}
