package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"weir/models"
)

// FileView is the page of a file or directory: preview, versions and what can be done.
type FileView struct {
	FilesView
	Model      *ModelView  // what it needs; nil: it is not where models are
	Preview    string      // text, image or notebook; "" for none
	NoPreview  models.Text // why there is none
	Gone       bool        // there is no such file any more, only versions
	Versions   []FileVersionRow
	VersionAge time.Duration // how long versions are kept
	More       string        // address of more versions, or empty
	Rename     Form          // name
}

// ModelView is what a model needs.
//
// Fields: model_environment, version_constraints.
type ModelView struct {
	Needs   models.ModelNeeds
	Problem models.Text // why its manifest is not valid
	Form    Form
}

// needsWords is what a model needs; empty: nothing.
func needsWords(ctx context.Context, n models.ModelNeeds) string {
	words := []string{n.Environment, n.VersionConstraints}
	if n.Minimum != (models.Minimum{}) {
		words = append(words, T(ctx, "at least %s", minimumWords(ctx, n.Minimum)))
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), ", ")
}

// launchPath is the launch form for a model.
func launchPath(project int64, model models.FilePath) string {
	return "/launch?project_id=" + number(project) + "&model_path=" + model.String()
}

// FileVersionRow is an overwritten version.
type FileVersionRow struct {
	ID    int64
	Bytes int64
	At    time.Time
	By    string

	Download, Changeable bool // what the reader may do
}

// days are whole days.
func days(d time.Duration) int64 { return int64(d.Hours()) / 24 }

// MoveView selects where files are moved or copied to.
//
// Fields: to, action, and item for each file.
type MoveView struct {
	ProjectID int64
	Directory models.FilePath
	Items     []models.FilePath
	Form      Form
}

// TrashView is the trash of a project's files.
type TrashView struct {
	ProjectID int64
	Project   string
	Member    bool
	Rows      []TrashRow
	Age       time.Duration   // how long deleted files are kept
	Lost      models.FilePath // of versions without a record, "" if there are none
	Next      string
}

// TrashRow is a deleted file or directory.
type TrashRow struct {
	ID         int64
	Path       models.FilePath
	Directory  bool
	Bytes      int64
	At         time.Time
	By         string
	Changeable bool
	Versions   bool // of the file
}

func trashPath(project, item int64, operation string) string {
	return filesPath(project, "/trash/"+number(item)+operation, "")
}

// ConfirmPurge asks before a deleted file is removed for good.
func ConfirmPurge(project int64, row TrashRow) ConfirmView {
	return ConfirmView{Title: models.Say("Remove %s for good", models.VisibleName(string(row.Path))),
		Consequences: []models.Text{models.Say("Its content is lost. This frees %s of storage.", fileSize(row.Bytes))},
		Button:       models.Say("Remove for good"), Action: trashPath(project, row.ID, "/delete"), Back: filesPath(project, "/trash", "")}
}

func versionPath(project, version int64, operation string) string {
	return filesPath(project, "/versions/"+number(version)+operation, "")
}

// ConfirmPurgeVersion asks before a version of a file is removed for good.
func ConfirmPurgeVersion(project int64, path models.FilePath, row FileVersionRow) ConfirmView {
	return ConfirmView{Title: models.Say("Remove a version of %s for good", models.VisibleName(string(path))),
		Consequences: []models.Text{models.Say("The content that was replaced at %s is lost. This frees %s of storage.", models.Instant{At: row.At},
			fileSize(row.Bytes))},
		Button: models.Say("Remove for good"), Action: versionPath(project, row.ID, "/delete"), Back: filesPath(project, "/entry", path)}
}

// fileKind names what a row is.
func fileKind(ctx context.Context, directory bool) string {
	if directory {
		return T(ctx, "directory")
	}
	return T(ctx, "file")
}

// parentOf is the directory of a path.
func parentOf(path models.FilePath) models.FilePath {
	at := strings.LastIndexByte(string(path), '/')
	return path[:max(at, 1)]
}

var modelEnvironmentField = field{Label: models.Say("Environment"), Hint: models.Say("Name of an environment. Leave empty for any.")}
