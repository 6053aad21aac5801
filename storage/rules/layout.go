package rules

import (
	"slices"
	"strconv"
	"strings"

	"weir/models"
)

// Notebook is the directory of the projects' directories.
const Notebook = "/notebook"

// HomeDir is where a member's own directory is mounted a second time.
const HomeDir = "/home/jovyan"

var (
	projectDirs = []string{"project_algorithm", "project_model", "project_dataset"}
	publicDirs  = []string{"/public_algorithm", "/public_model", "/public_dataset"}
)

// ProjectDir is the directory of a project.
func ProjectDir(project int64) string { return Notebook + "/" + strconv.FormatInt(project, 10) }

// MemberDir is the own directory of a member.
func MemberDir(project, member int64) string {
	return ProjectDir(project) + "/" + strconv.FormatInt(member, 10)
}

// MemberOf returns the member in whose own directory a path is; 0: in none.
func MemberOf(project int64, path string) int64 {
	rest, _ := strings.CutPrefix(path, ProjectDir(project)+"/")
	name, _, _ := strings.Cut(rest, "/")
	member, err := strconv.ParseInt(name, 10, 64)
	if err != nil || !Within(path, MemberDir(project, member)) {
		return 0
	}
	return member
}

// TeamDirs are the directories that a project's members share.
func TeamDirs(project int64) []string {
	var dirs []string
	for _, name := range projectDirs {
		dirs = append(dirs, ProjectDir(project)+"/"+name)
	}
	return dirs
}

// PublicDirs are the directories for everyone.
func PublicDirs() []string { return slices.Clone(publicDirs) }

// IsModel reports whether a path is in one of the directories for models, where files and
// directories can name the environment that they need.
func IsModel(path string) bool {
	parts := strings.Split(path, "/")
	return len(parts) > 2 && parts[1] == "public_model" || len(parts) > 4 && Within(path, Notebook) && parts[3] == "project_model"
}

// Resolve returns the path in the layout for a path as a workspace of the user has it:
// below [HomeDir] it is in the member's own directory.
func Resolve(u models.DirectoryUser, path string) string {
	if u.MemberID != 0 && Within(path, HomeDir) {
		return MemberDir(u.ProjectID, u.MemberID) + path[len(HomeDir):]
	}
	return path
}

// Fixed reports whether a directory is part of the layout, so that only Weir creates
// and removes it.
func Fixed(path string) bool {
	depth := strings.Count(path, "/")
	return path == "/" || depth == 1 || depth <= 3 && Within(path, Notebook)
}

// layoutDirs are the directories at which the layout's access changes for a user,
// parents first.
func layoutDirs(u models.DirectoryUser) []string {
	dirs := append(PublicDirs(), ProjectDir(u.ProjectID))
	if u.MemberID == 0 {
		return dirs
	}
	dirs = append(dirs, TeamDirs(u.ProjectID)...)
	for _, member := range append(slices.Clone(u.Inherits), u.MemberID) {
		dirs = append(dirs, MemberDir(u.ProjectID, member))
	}
	return dirs
}

// layoutRule is the layout as a rule on one path, if it says anything there to the user.
func layoutRule(u models.DirectoryUser, subjects Subjects, path string) (Rule, bool) {
	r := Rule{Path: models.FilePath(path), Subject: everyone, Access: models.AccessRead, Download: models.DownloadInherit, Layout: true}
	if slices.Contains(publicDirs, path) {
		if slices.Contains(u.Curates, path) {
			r.Access = models.AccessWrite
		}
		return r, true
	}
	if u.MemberID == 0 || !strings.HasPrefix(path, Notebook) {
		return r, false
	}
	project := ProjectDir(u.ProjectID)
	r.Subject = subjects[2]
	if path == project {
		return r, true
	}
	dir, name := Split(path)
	r.Access = models.AccessWrite
	if dir != project || slices.Contains(projectDirs, name) {
		return r, dir == project
	}
	r.Subject = subjects[0]
	member, err := strconv.ParseInt(name, 10, 64)
	return r, err == nil && MemberDir(u.ProjectID, member) == path && (member == u.MemberID || slices.Contains(u.Inherits, member))
}
