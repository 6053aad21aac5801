package web

import (
	"context"
	"net/url"
	"path"
	"slices"
	"time"

	"github.com/a-h/templ"

	"weir/models"
)

// FilesView is a page of a directory, or of what a search found below it.
type FilesView struct {
	ProjectID int64
	Project   string
	Member    bool // of the project
	CanRule   bool // change the rules
	Directory FileRow
	IsModel   bool   // the directory is a model, or of one
	HasModel  bool   // the directory contains files with tensors
	Crumbs    []Link // the directories above, from the top
	Roots     []FileRoot
	Tree      []FileBranch
	Rows      []FileRow
	Storage   []StorageView
	Sort      string // name, size or modified
	Down      bool
	Query     string // of a search
	Partial   bool   // the search ended at a bound
	Next      string // address of the next page, or empty
	First     bool   // this is the first page
	Form      Form   // of a new directory: name
}

// FileRow is a file or directory with what the reader may do with it.
type FileRow struct {
	Name       string // for people
	Path       models.FilePath
	Kind       string // directory, file or other
	Size       int64  // bytes
	Modified   time.Time
	Access     models.FileAccess
	Download   bool
	Ended      bool // the project or the membership has ended
	Changeable bool
	ETag       string
}

// IsDirectory reports whether the row is a directory.
func (r FileRow) IsDirectory() bool { return r.Kind == "directory" }

// isONNX reports whether the row is a model in ONNX format by its name.
func (r FileRow) isONNX() bool { return r.Kind == "file" && path.Ext(string(r.Path)) == ".onnx" }

// Selectable reports whether the row can be moved, copied or deleted.
func (r FileRow) Selectable() bool { return r.Changeable || r.Download && r.Kind != "other" }

// Writable reports whether the reader may create something in the directory.
func (r FileRow) Writable() bool { return r.IsDirectory() && r.Access == models.AccessWrite }

// FileRoot is a directory at the top of what the reader sees.
type FileRoot struct {
	Label   models.Text
	Path    models.FilePath
	Current bool
}

// FileBranch is a directory in the tree, with those in it if it is open.
type FileBranch struct {
	Label    models.Text
	Path     models.FilePath
	Branches []FileBranch
	Partial  bool // there can be more directories in it
}

// StorageView is how much storage a project or a member uses.
type StorageView struct {
	Label          models.Text
	Used, Reserved int64 // bytes
	LimitMiB       int64
}

const mebibyte = 1 << 20

// Limit is in bytes; 0 if there is none.
func (s StorageView) Limit() int64 {
	if models.IsUnlimited(s.LimitMiB) {
		return 0
	}
	return s.LimitMiB * mebibyte
}

func (s StorageView) over() bool { return s.Limit() > 0 && s.Used+s.Reserved > s.Limit() }

func (s StorageView) words(ctx context.Context) string {
	limit := models.Quantity("storage_mib", s.LimitMiB)
	if s.Reserved > 0 {
		return T(ctx, "%s used + %s reserved by transfers, limit %s", fileSize(s.Used), fileSize(s.Reserved), limit)
	}
	return T(ctx, "%s used, limit %s", fileSize(s.Used), limit)
}

// fileSize formats bytes.
func fileSize(n int64) string { return models.FormatBytes(n) }

// filesPath is an address below a project's files; the path is an argument of its own.
func filesPath(project int64, operation string, path models.FilePath) string {
	address := projectPath(project) + "/files" + operation
	if path != "" {
		address += "?path=" + path.String()
	}
	return address
}

func (v FilesView) at(operation string, path models.FilePath) templ.SafeURL {
	return templ.SafeURL(filesPath(v.ProjectID, operation, path))
}

// content is where a file is downloaded.
func (v FilesView) content(path models.FilePath) templ.SafeURL {
	return templ.SafeURL("/api/v1" + filesPath(v.ProjectID, "/content", path))
}

func (v FilesView) archive(path models.FilePath) templ.SafeURL {
	return templ.SafeURL("/api/v1" + filesPath(v.ProjectID, "/archive", path))
}

// href is where a row leads.
func (v FilesView) href(r FileRow) templ.SafeURL {
	if r.IsDirectory() {
		return v.at("", r.Path)
	}
	return v.at("/entry", r.Path)
}

func (v FilesView) title(ctx context.Context) string {
	if v.Query != "" {
		return T(ctx, "Search: %s", v.Query)
	}
	if v.Directory.Path == "/" || v.isProject() {
		return T(ctx, "Files")
	}
	return v.Directory.Name
}

// isProject reports whether the directory is that of the project.
func (v FilesView) isProject() bool {
	return v.Directory.Path == models.FilePath("/notebook/"+number(v.ProjectID))
}

func (v FilesView) topics() []string {
	if !v.Member {
		return nil
	}
	return []string{"project:" + number(v.ProjectID)}
}

// sortedBy is the address of the list in another order.
func (v FilesView) sortedBy(sort string) templ.SafeURL {
	q := url.Values{"sort": {sort}}
	if v.Sort == sort && !v.Down || v.Sort != sort && sort != "name" {
		q.Set("order", "desc")
	}
	return templ.SafeURL(filesPath(v.ProjectID, "", v.Directory.Path) + "&" + q.Encode())
}

func (v FilesView) sorted(sort string) string {
	return ProjectsView{Sort: v.Sort, Down: v.Down}.sorted(sort)
}

func (v FilesView) arrow(sort string) string {
	return ProjectsView{Sort: v.Sort, Down: v.Down}.arrow(sort)
}

// selectable reports whether the reader may change something on the page.
func (v FilesView) selectable() bool {
	return slices.ContainsFunc(v.Rows, FileRow.Selectable)
}

func (v FilesView) deletable() bool {
	return slices.ContainsFunc(v.Rows, func(r FileRow) bool { return r.Changeable })
}

// readOnly is why nothing can be created in the directory; empty if it can.
func (v FilesView) readOnly() models.Text {
	switch d := v.Directory; {
	case d.Writable():
		return models.Text{}
	case d.Ended:
		return models.Say("You can only read here: the project or your membership has ended.")
	case d.Path == "/" || v.isProject():
		return models.Say("Open a directory to add files. Only the portal creates directories here.")
	default:
		return models.Say("You can only read here.")
	}
}

// accessWords is what the reader may do.
func accessWords(ctx context.Context, access models.FileAccess, download bool) string {
	words := accessWord(ctx, access)
	if !download && access != models.AccessNone {
		words += T(ctx, ", no download")
	}
	return words
}

func accessWord(ctx context.Context, access models.FileAccess) string {
	switch access {
	case models.AccessWrite:
		return T(ctx, "read and write")
	case models.AccessRead:
		return T(ctx, "read only")
	default:
		return T(ctx, "no access")
	}
}

// texts are the sentences of the page's script; {0} to {3} are filled in there.
func (v FilesView) texts(ctx context.Context) templ.Attributes {
	return templ.Attributes{
		"data-t-selected":   T(ctx, "%s selected", "{0}"),
		"data-t-progress":   T(ctx, "%s of %s files, %s of %s", "{0}", "{1}", "{2}", "{3}"),
		"data-t-done":       T(ctx, "Files uploaded: %s", "{0}"),
		"data-t-failed":     T(ctx, "%s failed", "{0}"),
		"data-t-exists":     T(ctx, "%s already exists", "{0}"),
		"data-t-interrupt":  T(ctx, "%s: %s uploaded. Choose the file again to continue.", "{0}", "{1}"),
		"data-t-rename":     T(ctx, "New name of %s", "{0}"),
		"data-t-moved":      T(ctx, "%s moved", "{0}"),
		"data-t-copied":     T(ctx, "%s copied", "{0}"),
		"data-t-deleted":    T(ctx, "%s moved to the trash", "{0}"),
		"data-t-clipboard":  T(ctx, "%s ready to paste", "{0}"),
		"data-t-unreadable": T(ctx, "Your browser could not read it"),
		"data-t-reading":    T(ctx, "Reading the folder: %s files", "{0}"),
		"data-t-tar":        T(ctx, "It has too many entries for a ZIP archive and is downloaded as TAR."),
		"data-t-forbidden":  T(ctx, "The rules do not allow this."),
		"data-t-missing":    T(ctx, "It does not exist any more."),
		"data-t-conflict":   T(ctx, "There is already a file or directory with this name, or it is in use."),
		"data-t-quota":      T(ctx, "The storage limit is exceeded: yours, or that of the project."),
		"data-t-invalid":    T(ctx, "The name is not valid."),
		"data-t-connection": T(ctx, "The connection was lost."),
		"data-t-error":      T(ctx, "Something went wrong. No changes were made."),
	}
}
