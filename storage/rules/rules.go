package rules

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// everyone is the subject that each user has.
const everyone = string(models.SubjectEveryone)

// Subjects are the subjects of a user, written "role:3", the most specific first. A user
// who is no member has only the last one.
type Subjects [4]string

// SubjectsOf returns the subjects of a user.
func SubjectsOf(u models.DirectoryUser) Subjects {
	if u.MemberID == 0 {
		return Subjects{3: everyone}
	}
	return Subjects{subject(models.SubjectMember, u.MemberID), subject(models.SubjectRole, u.RoleID),
		subject(models.SubjectProject, u.ProjectID), everyone}
}

// Contains reports whether a rule's subject is one of the user's.
func (s *Subjects) Contains(subject string) bool {
	return subject != "" && (subject == s[0] || subject == s[1] || subject == s[2] || subject == s[3])
}

func subject(kind models.FileSubject, id int64) string {
	return string(kind) + ":" + strconv.FormatInt(id, 10)
}

// Rule is a rule as it is evaluated.
type Rule struct {
	ID       int64               `json:"id,omitempty" doc:"absent: of the layout of the shared directories"`
	Path     models.FilePath     `json:"path" doc:"percent-encoded path"`
	Subject  string              `json:"subject" doc:"such as role:3"`
	Access   models.FileAccess   `json:"access" enum:"none,read,write"`
	Download models.FileDownload `json:"download" enum:"inherit,allow,deny"`
	Layout   bool                `json:"-"`
}

// Of returns a row as a rule.
func Of(r models.FileRule) *Rule {
	rule := Rule{ID: r.ID, Path: r.Path, Subject: everyone, Access: r.Access, Download: r.Download}
	switch r.Subject {
	case models.SubjectMember, models.SubjectRole:
		rule.Subject = subject(r.Subject, r.SubjectID)
	case models.SubjectProject:
		rule.Subject = subject(r.Subject, r.ProjectID)
	}
	return &rule
}

// Set is the rules of one project, indexed. It does not change.
type Set struct {
	dir    string                      // of the project
	at     map[string]map[string]*Rule // by path, then by subject
	paths  []string                    // with rules, sorted
	shared bool                        // with everyone
}

// NewSet returns the set of a project's rules.
func NewSet(project int64, rows []models.FileRule) *Set {
	s := &Set{dir: ProjectDir(project), at: map[string]map[string]*Rule{}}
	for _, row := range rows {
		r := Of(row)
		path := string(r.Path)
		if s.at[path] == nil {
			s.at[path] = map[string]*Rule{}
		}
		s.at[path][r.Subject] = r
		s.shared = s.shared || r.Subject == everyone && r.Access != models.AccessNone
	}
	s.paths = slices.Sorted(maps.Keys(s.at))
	return s
}

// Applicable appends the rules that apply to a clean path for the subjects of a user: the
// first one wins.
func (s *Set) Applicable(list []*Rule, subjects *Subjects, path string) []*Rule {
	if !Within(path, s.dir) {
		return list
	}
	for dir := range upwards(path) {
		rules := s.at[dir]
		if rules == nil {
			continue
		}
		for _, name := range subjects {
			if r := rules[name]; r != nil {
				list = append(list, r)
			}
		}
	}
	return list
}

// Layout appends the layout's rules on a clean path for a user: the first one wins. They
// hold where no rule of the project applies.
func (s *Set) Layout(list []*Rule, u models.DirectoryUser, subjects *Subjects, path string) []*Rule {
	for strings.Count(path, "/") > 3 {
		path, _ = Split(path)
	}
	for dir := range upwards(path) {
		if r, ok := layoutRule(u, *subjects, dir); ok {
			list = append(list, &r)
		}
	}
	return list
}

// Within lists the paths with rules that are dir or below it, sorted.
func (s *Set) Within(dir string) []string {
	from, at := slices.BinarySearch(s.paths, dir)
	var list []string
	if at {
		list = append(list, dir)
	}
	for _, path := range s.paths[from:] {
		if !strings.HasPrefix(path, dir) {
			break
		}
		if path != dir && Within(path, dir) {
			list = append(list, path)
		}
	}
	return list
}

// HasRules reports whether there are rules on exactly this path.
func (s *Set) HasRules(path string) bool { return s.at[path] != nil }

// ForEveryone reports whether a rule gives access to users who are not members.
func (s *Set) ForEveryone() bool { return s.shared }

// Boundaries are the paths at which a user's verdict can differ from that of the
// directory above, sorted, so that parents come first.
func (s *Set) Boundaries(u models.DirectoryUser) []string {
	list := append(layoutDirs(u), s.paths...)
	slices.Sort(list)
	return slices.Compact(list)
}

// Verdict is what a user may do with a path.
type Verdict struct {
	Access   models.FileAccess `json:"access" enum:"none,read,write"`
	Download bool              `json:"download"`
	Ended    bool              `json:"ended,omitempty" doc:"write is reduced to read, since the project or the membership has ended"`

	Exceeded bool `json:"exceeded,omitempty" doc:"mounts are read-only, since a storage limit was exceeded for too long"`

	// The rules that decided; of no path: there is none.
	Rule         Rule `json:"-"`
	DownloadRule Rule `json:"-"`
}

// Mounted is the verdict for a mount: while a storage limit is exceeded for too long, the
// user can delete files with the service only.
func (v Verdict) Mounted() Verdict {
	if v.Exceeded {
		v.Access = models.AccessRead
	}
	return v
}

// Conclude returns the verdict of the winning rules. nil: there is none.
func Conclude(u models.DirectoryUser, access, download *Rule) Verdict {
	v := Verdict{Access: models.AccessNone}
	if access != nil {
		v.Rule, v.Access = *access, access.Access
	}
	if v.Access == models.AccessWrite && (u.Ended || u.Left) {
		v.Access, v.Ended = models.AccessRead, true
	}
	v.Exceeded = v.Access == models.AccessWrite && u.Exceeded
	v.Download = v.Access.Includes(models.AccessRead)
	if download != nil {
		v.DownloadRule = *download
		v.Download = v.Download && download.Download == models.DownloadAllow
	}
	return v
}
