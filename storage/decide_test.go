package storage

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path"
	"strconv"
	"strings"
	"testing"

	"github.com/casbin/casbin/v2"
	"github.com/casbin/casbin/v2/effector"
	"github.com/casbin/casbin/v2/model"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"weir/models"
	"weir/storage/rules"
)

func newTestDecider(t testing.TB) *decider {
	t.Helper()
	d, err := newDecider(slog.Default)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *decider) of(set *rules.Set, u models.DirectoryUser, path string) rules.Verdict {
	subjects := rules.SubjectsOf(u)
	return d.verdict(set, u, &subjects, path)
}

// The verdicts of the layout, without rules.
func TestLayout(t *testing.T) {
	d, set := newTestDecider(t), rules.NewSet(5, nil)
	member := models.DirectoryUser{ProjectID: 5, MemberID: 12, RoleID: 3, Inherits: []int64{7, 9}}
	const none, read, write = models.AccessNone, models.AccessRead, models.AccessWrite
	for _, c := range []struct {
		path                     string
		present, ended, outsider models.FileAccess
	}{
		{"/notebook/5/project_algorithm", write, read, none},
		{"/notebook/5/project_model/a/b.bin", write, read, none},
		{"/notebook/5/project_dataset", write, read, none},
		{"/notebook/5/12", write, read, none},
		{"/notebook/5/12/x.ipynb", write, read, none},
		{"/notebook/5/7", write, read, none},
		{"/notebook/5/9/x", write, read, none},
		{"/notebook/5/8", read, read, none},
		{"/notebook/5/120", read, read, none},
		{"/notebook/5/012", read, read, none},
		{"/notebook/5/project_models", read, read, none},
		{"/notebook/5", read, read, none},
		{"/public_model", read, read, read},
		{"/public_dataset/x", read, read, read},
		{"/public_dataset/notebook/5/12", read, read, read},
		{"/public", none, none, none},
		{"/notebook", none, none, none},
		{"/notebook/6", none, none, none},
		{"/notebook/6/12", none, none, none},
		{"/notebook/05/12", none, none, none},
		{"/home", none, none, none},
		{"/", none, none, none},
		{"/etc/passwd", none, none, none},
	} {
		ended, left, outsider := member, member, models.DirectoryUser{ProjectID: 5}
		ended.Ended, left.Left = true, true
		for _, v := range []struct {
			name string
			user models.DirectoryUser
			want models.FileAccess
		}{{"present", member, c.present}, {"after the project's end", ended, c.ended}, {"after leaving", left, c.ended}, {"outsider", outsider, c.outsider}} {
			got := d.of(set, v.user, c.path)
			if got.Access != v.want || got.Download != (v.want != none) || got.Ended != (v.want == read && c.present == write && v.name != "outsider") {
				t.Errorf("%s, %s: %+v, want %s", c.path, v.name, got, v.want)
			}
		}
	}
}

func TestTheMostSpecificRuleDecides(t *testing.T) {
	d := newTestDecider(t)
	const model = "/notebook/5/project_model"
	rule := func(id int64, path string, subject models.FileSubject, subjectID int64, access models.FileAccess, download models.FileDownload) models.FileRule {
		return models.FileRule{ID: id, ProjectID: 5, Path: models.FilePath(path), Subject: subject, SubjectID: subjectID, Access: access, Download: download}
	}
	set := rules.NewSet(5, []models.FileRule{
		rule(1, model, models.SubjectProject, 0, models.AccessRead, models.DownloadDeny),
		rule(2, model, models.SubjectRole, 3, models.AccessWrite, models.DownloadInherit),
		rule(3, model+"/secret", models.SubjectRole, 3, models.AccessNone, models.DownloadInherit),
		rule(4, model+"/secret", models.SubjectMember, 12, models.AccessRead, models.DownloadAllow),
		rule(5, model+"/shown", models.SubjectEveryone, 0, models.AccessRead, models.DownloadInherit),
		rule(6, "/notebook/5", models.SubjectRole, 4, models.AccessNone, models.DownloadInherit),
	})
	for _, c := range []struct {
		path         string
		member, role int64
		access       models.FileAccess
		download     bool
		rule         int64
	}{
		{model + "/a", 12, 3, models.AccessWrite, false, 2},
		{model + "/a", 13, 9, models.AccessRead, false, 1},
		{model + "/secret/x", 13, 3, models.AccessNone, false, 3},
		{model + "/secret/x", 12, 3, models.AccessRead, true, 4},
		{model + "/secrets", 13, 3, models.AccessWrite, false, 2},
		{model + "/shown/x", 13, 3, models.AccessRead, false, 5},
		{model + "/shown", 0, 0, models.AccessRead, true, 5},
		{model, 0, 0, models.AccessNone, false, 0},
		{"/notebook/5/14", 14, 4, models.AccessNone, false, 6}, // also its own directory
		{model, 14, 4, models.AccessRead, false, 1},
		{"/public_model", 14, 4, models.AccessRead, true, 0},
	} {
		u := models.DirectoryUser{ProjectID: 5, MemberID: c.member, RoleID: c.role}
		if got := d.of(set, u, c.path); got.Access != c.access || got.Download != c.download || got.Rule.ID != c.rule {
			t.Errorf("%s for member %d: %+v, want %s, %t by rule %d", c.path, c.member, got, c.access, c.download, c.rule)
		}
	}
}

// bruteForce evaluates the rules in the words of docs/storage.md, with all of them.
func bruteForce(rows []models.FileRule, u models.DirectoryUser, name string) (access models.FileAccess, download bool) {
	within := func(dir string) bool {
		for p := name; ; p = path.Dir(p) {
			if p == dir {
				return true
			}
			if p == "/" {
				return false
			}
		}
	}
	rank := func(r models.FileRule) int {
		switch {
		case !within(string(r.Path)):
			return 0
		case r.Subject == models.SubjectMember && r.SubjectID == u.MemberID && u.MemberID != 0:
			return 4
		case r.Subject == models.SubjectRole && r.SubjectID == u.RoleID && u.MemberID != 0:
			return 3
		case r.Subject == models.SubjectProject && u.MemberID != 0:
			return 2
		case r.Subject == models.SubjectEveryone:
			return 1
		}
		return 0
	}
	access, best, bestDownload, decided := models.AccessNone, 0, 0, models.DownloadInherit
	for _, r := range rows {
		n := rank(r)
		if n == 0 {
			continue
		}
		n += 10 * strings.Count(string(r.Path), "/")
		if n > best {
			access, best = r.Access, n
		}
		if r.Download != models.DownloadInherit && n > bestDownload {
			decided, bestDownload = r.Download, n
		}
	}
	if best == 0 {
		access = bruteLayout(u, within)
	}
	if (u.Ended || u.Left) && access == models.AccessWrite {
		access = models.AccessRead
	}
	return access, access != models.AccessNone && decided != models.DownloadDeny
}

func bruteLayout(u models.DirectoryUser, within func(string) bool) models.FileAccess {
	project := fmt.Sprintf("/notebook/%d", u.ProjectID)
	if u.MemberID != 0 {
		dirs := []string{"project_algorithm", "project_model", "project_dataset", strconv.FormatInt(u.MemberID, 10)}
		for _, id := range u.Inherits {
			dirs = append(dirs, strconv.FormatInt(id, 10))
		}
		for _, dir := range dirs {
			if within(project + "/" + dir) {
				return models.AccessWrite
			}
		}
		if within(project) {
			return models.AccessRead
		}
	}
	for _, dir := range []string{"/public_algorithm", "/public_model", "/public_dataset"} {
		if within(dir) {
			return models.AccessRead
		}
	}
	return models.AccessNone
}

// genPath draws paths that meet: few names, the layout's directories, bytes.
func genPath(t *rapid.T) string {
	dir := rapid.SampledFrom([]string{"/notebook/5", "/notebook/5/project_model", "/notebook/5/2", "/notebook/5/3", "/notebook/5/9"}).Draw(t, "dir")
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "a.b", "ab", "\xff", " "}), 0, 3).Draw(t, "names")
	return strings.Join(append([]string{dir}, names...), "/")
}

func genRules(t *rapid.T) []models.FileRule {
	var rows []models.FileRule
	seen := map[string]bool{}
	for i := range rapid.IntRange(0, 12).Draw(t, "rules") {
		r := models.FileRule{ID: int64(i + 1), ProjectID: 5, Path: models.FilePath(genPath(t)),
			Subject:  rapid.SampledFrom([]models.FileSubject{models.SubjectMember, models.SubjectRole, models.SubjectProject, models.SubjectEveryone}).Draw(t, "subject"),
			Access:   rapid.SampledFrom([]models.FileAccess{models.AccessNone, models.AccessRead, models.AccessWrite}).Draw(t, "access"),
			Download: rapid.SampledFrom([]models.FileDownload{models.DownloadInherit, models.DownloadAllow, models.DownloadDeny}).Draw(t, "download")}
		if r.Subject == models.SubjectMember || r.Subject == models.SubjectRole {
			r.SubjectID = rapid.Int64Range(1, 4).Draw(t, "id")
		}
		if key := fmt.Sprint(r.Path, r.Subject, r.SubjectID); !seen[key] {
			seen[key] = true
			rows = append(rows, r)
		}
	}
	return rows
}

func genUser(t *rapid.T) models.DirectoryUser {
	u := models.DirectoryUser{ProjectID: 5, MemberID: rapid.Int64Range(0, 4).Draw(t, "member")}
	if u.MemberID == 0 {
		return u
	}
	u.RoleID, u.Ended, u.Left = rapid.Int64Range(0, 4).Draw(t, "role"), rapid.Bool().Draw(t, "ended"), rapid.Bool().Draw(t, "left")
	if rapid.Bool().Draw(t, "inherits") {
		u.Inherits = []int64{9}
	}
	return u
}

func TestVerdictsAreThoseOfBruteForce(t *testing.T) {
	d := newTestDecider(t)
	rapid.Check(t, func(t *rapid.T) {
		rows := genRules(t)
		set := rules.NewSet(5, rows)
		for range 10 {
			u, name := genUser(t), genPath(t)
			access, download := bruteForce(rows, u, name)
			if got := d.of(set, u, name); got.Access != access || got.Download != download {
				t.Fatalf("%q for %+v: %+v, brute force says %s, %t", name, u, got, access, download)
			}
		}
	})
}

// casbin's Enforcer chooses the same rule with the same model, whatever rules are given to
// it: also those that do not apply.
func TestCasbinsEnforcerChoosesTheSame(t *testing.T) {
	d := newTestDecider(t)
	rapid.Check(t, func(t *rapid.T) {
		u, name := genUser(t), genPath(t)
		subjects := rules.SubjectsOf(u)
		r := &request{subjects: &subjects, path: name}
		for _, row := range genRules(t) {
			r.list = append(r.list, rules.Of(row))
		}
		for effect, of := range map[string]func(*rules.Rule) effector.Effect{"access": accessEffect, "download": downloadEffect} {
			got, err := d.first(r, of)
			if want := enforced(t, r, of); err != nil || got != want {
				t.Fatalf("%s of %q for %+v: %+v, %v; casbin chooses %+v", effect, name, u, got, err, want)
			}
		}
	})
}

// enforced is the choice of casbin's Enforcer.
func enforced(t *rapid.T, r *request, effect func(*rules.Rule) effector.Effect) *rules.Rule {
	m, err := model.NewModelFromString(accessModel)
	if err != nil {
		t.Fatal(err)
	}
	e, err := casbin.NewEnforcer(m)
	if err != nil {
		t.Fatal(err)
	}
	e.AddFunction("applies", func(args ...any) (any, error) {
		at, err := strconv.Atoi(args[1].(string))
		if err != nil {
			return nil, err
		}
		return applies(args[0], r.list[at])
	})
	words := map[effector.Effect]string{effector.Allow: "allow", effector.Deny: "deny"}
	for i, rule := range r.list {
		if word := words[effect(rule)]; word != "" {
			if _, err := e.AddPolicy(strconv.Itoa(i), word); err != nil {
				t.Fatal(err)
			}
		}
	}
	if list, err := e.GetPolicy(); err != nil || len(list) == 0 { // it would evaluate the matcher without a rule
		return nil
	}
	_, chosen, err := e.EnforceEx(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(chosen) == 0 {
		return nil
	}
	at, err := strconv.Atoi(chosen[0])
	if err != nil {
		t.Fatal(err)
	}
	return r.list[at]
}

// manyRules is 10,000 rules of a project on 2,000 paths, and paths below them.
func manyRules() (rows []models.FileRule, paths []string) {
	random := rand.New(rand.NewPCG(1, 2))
	subjects := []models.FileSubject{models.SubjectMember, models.SubjectRole, models.SubjectProject, models.SubjectEveryone}
	for i := range 10_000 {
		dir := fmt.Sprintf("/notebook/5/project_model/team%d/set%d/run%d", i/5%20, i/5%200, i/5%2000)
		r := models.FileRule{ID: int64(i + 1), ProjectID: 5, Path: models.FilePath(dir), Subject: subjects[i%4], Access: models.AccessRead, Download: models.DownloadAllow}
		if i%4 < 2 {
			r.SubjectID = random.Int64N(50) + 1
		}
		rows, paths = append(rows, r), append(paths, dir+"/checkpoints/model.safetensors")
	}
	return rows, paths
}

// reportCPU adds the processor time of an operation, which other programs on the machine
// lengthen less than its duration.
func reportCPU(b *testing.B) {
	b.Helper()
	used := func() (usage unix.Rusage) {
		if err := unix.Getrusage(unix.RUSAGE_SELF, &usage); err != nil {
			b.Fatal(err)
		}
		return usage
	}
	before := used()
	b.Cleanup(func() {
		after := used()
		spent := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
		b.ReportMetric(float64(spent)/float64(b.N), "cpu-ns/op")
	})
}

// BenchmarkVerdict decides about access and download at random paths, nothing cached,
// with 10,000 rules in the project.
func BenchmarkVerdict(b *testing.B) {
	d := newTestDecider(b)
	rows, paths := manyRules()
	set := rules.NewSet(5, rows)
	u := models.DirectoryUser{ProjectID: 5, MemberID: 12, RoleID: 3}
	subjects := rules.SubjectsOf(u)
	b.ReportAllocs()
	reportCPU(b)
	for i := 0; b.Loop(); i++ {
		if v := d.verdict(set, u, &subjects, paths[i*7919%len(paths)]); v.Access == models.AccessNone {
			b.Fatal(v)
		}
	}
}

// BenchmarkCachedVerdict is BenchmarkVerdict with the cache of a user's verdicts.
func BenchmarkCachedVerdict(b *testing.B) {
	rows, paths := manyRules()
	s := &ruleSet{Set: rules.NewSet(5, rows), decider: newTestDecider(b), users: map[int64]*User{}}
	u := s.user(models.DirectoryUser{ProjectID: 5, MemberID: 12, RoleID: 3})
	b.ReportAllocs()
	reportCPU(b)
	for i := 0; b.Loop(); i++ {
		if v := u.Verdict(paths[i*7919%len(paths)]); v.Access == models.AccessNone {
			b.Fatal(v)
		}
	}
}
