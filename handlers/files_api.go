package handlers

import (
	"context"
	"net/http"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/storage"
	"weir/storage/files"
)

func (a rest) filesOperations(s section) {
	register(a, s, route{http.MethodGet, "/projects/{id}/files", 200, "list-files", models.Say("List a shared directory")}, a.listFiles,
		http.StatusConflict)
	register(a, s, route{http.MethodDelete, "/projects/{id}/files", 200, "delete-file", models.Say("Move a file or directory to the trash")},
		a.deleteFile)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/stat", 200, "get-file", models.Say("Describe a file or directory")}, a.getFile)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/checksum", 200, "get-file-checksum",
		models.Say("Compute the SHA-256 of a file")}, a.getFileChecksum, http.StatusConflict)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/search", 200, "search-files", models.Say("Search files by name")},
		a.searchFiles)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/tree", 200, "get-file-tree",
		models.Say("List the directories that lead to a path, those beside them and those in it")}, a.getFileTree)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/usage", 200, "get-file-usage",
		models.Say("Get the storage use of a project and of its members")}, a.getFileUsage)
	register(a, s, route{http.MethodPost, "/projects/{id}/files/directories", 201, "create-directory", models.Say("Create a directory")},
		a.createDirectory)
	register(a, s, route{http.MethodPost, "/projects/{id}/files/copies", 201, "copy-file",
		models.Say("Copy a file or directory; overwrites nothing")}, a.copyFile)
	register(a, s, route{http.MethodPost, "/projects/{id}/files/moves", 200, "move-file",
		models.Say("Move or rename a file or directory; overwrites nothing")}, a.moveFile)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/trash", 200, "list-trash", models.Say("List deleted files and directories")},
		a.listTrash)
	register(a, s, route{http.MethodPost, "/projects/{id}/files/trash/{item}/restore", 200, "restore-trash",
		models.Say("Restore a deleted file or directory")}, a.restoreTrash)
	register(a, s, route{http.MethodDelete, "/projects/{id}/files/trash/{item}", 204, "purge-trash",
		models.Say("Remove a deleted file or directory for good")}, a.purgeTrash)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/versions", 200, "list-file-versions",
		models.Say("List the overwritten versions of a file")}, a.listFileVersions)
	register(a, s, route{http.MethodPost, "/projects/{id}/files/versions/{version}/restore", 200, "restore-file-version",
		models.Say("Restore an overwritten version of a file")}, a.restoreFileVersion)
	register(a, s, route{http.MethodDelete, "/projects/{id}/files/versions/{version}", 204, "purge-file-version",
		models.Say("Remove an overwritten version of a file for good")}, a.purgeFileVersion)
	register(a, s, route{http.MethodGet, "/projects/{id}/files/environment", 200, "get-model-environment",
		models.Say("Get the environment that a model needs, by its manifest")}, a.getModelEnvironment, http.StatusConflict)
	register(a, s, route{http.MethodPut, "/projects/{id}/files/environment", 200, "set-model-environment",
		models.Say("Set the environment that a model needs, in its manifest")}, a.setModelEnvironment)
	a.deploymentsOperations(s)
	a.fileContentOperations(s)
	a.describeUploads(s)
}

// FileQuery selects entries of a directory.
type FileQuery struct {
	ByPath
	Sort   string `query:"sort" enum:"name,size,modified" default:"name" doc:"directories come first"`
	Order  string `query:"order" enum:"asc,desc" doc:"order of the sort; default ascending"`
	Cursor string `query:"cursor" maxLength:"1000" doc:"next_cursor of the previous page"`
	Limit  int    `query:"limit" minimum:"1" maximum:"1000" default:"200" doc:"maximum number of items"`
}

// FileList is one page of a directory.
type FileList struct {
	Directory files.Entry `json:"directory"`
	List[files.Entry]
}

func (a rest) listFiles(ctx context.Context, in *FileQuery) (*Response[FileList], error) {
	l, err := a.Files.List(ctx, actorOf(ctx), in.ID, files.ListQuery{Path: models.FilePath(in.Path), Sort: files.Sort(in.Sort),
		Descending: in.Order == "desc", Cursor: in.Cursor, Limit: in.Limit})
	return &Response[FileList]{FileList{l.Directory, List[files.Entry]{models.Map(l.Entries, unchanged), l.Next}}}, err
}

func (a rest) getFile(ctx context.Context, in *ByPath) (*FoundFile, error) {
	return foundFile(a.Files.Stat(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path)))
}

// FileDeletion names what is deleted.
type FileDeletion struct {
	ByPath
	FileCondition
}

// TrashedFile is a deleted file or directory.
type TrashedFile struct {
	ID        int64           `json:"id"`
	Path      models.FilePath `json:"path" doc:"percent-encoded path at which it was"`
	Directory bool            `json:"directory"`
	Bytes     int64           `json:"bytes"`
	DeletedAt time.Time       `json:"deleted_at"`
	DeletedBy string          `json:"deleted_by,omitempty" doc:"name; absent if it is not known"`
}

func trashedFileOf(f files.Trashed) TrashedFile {
	return TrashedFile{f.ID, f.Path, f.Directory, f.Bytes, f.At.UTC(), f.By}
}

func (a rest) deleteFile(ctx context.Context, in *FileDeletion) (*Response[TrashedFile], error) {
	item, err := a.Files.Delete(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.condition())
	return &Response[TrashedFile]{trashedFileOf(files.Trashed{TrashedFile: item, By: actorOf(ctx).User.Name})}, err
}

// FileChecksum is the SHA-256 of a file's content.
type FileChecksum struct {
	SHA256 string `json:"sha256"`
	ETag   string `json:"etag" doc:"of the content"`
}

func (a rest) getFileChecksum(ctx context.Context, in *ByPath) (*Response[FileChecksum], error) {
	sum, e, err := a.Files.Checksum(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path))
	return &Response[FileChecksum]{FileChecksum{sum, e.ETag}}, err
}

// FileSearch searches below a directory.
type FileSearch struct {
	ByPath
	Q string `query:"q" maxLength:"255" doc:"part of the name, in any case"`
}

// FoundFiles are the results of a search.
type FoundFiles struct {
	Items    []files.Entry `json:"items"`
	Complete bool          `json:"complete" doc:"false: there can be more"`
}

func (a rest) searchFiles(ctx context.Context, in *FileSearch) (*Response[FoundFiles], error) {
	f, err := a.Files.Search(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), in.Q)
	return &Response[FoundFiles]{FoundFiles{models.Map(f.Entries, unchanged), f.Complete}}, err
}

// FileTree are the directories around a path.
type FileTree struct {
	Directories []files.TreeDirectory `json:"directories" doc:"shared directories of the project and of everyone"`
}

func (a rest) getFileTree(ctx context.Context, in *ByPath) (*Response[FileTree], error) {
	tree, err := a.Files.Tree(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path))
	return &Response[FileTree]{FileTree{tree}}, err
}

// FileUsage is the storage use of a project.
type FileUsage struct {
	UsedBytes     int64      `json:"used_bytes" doc:"with the trash and old versions; what notebooks write is measured afterwards"`
	ReservedBytes int64      `json:"reserved_bytes" doc:"by transfers in progress"`
	QuotaMiB      *int64     `json:"quota_mib,omitempty" doc:"absent: unlimited"`
	MeasuredAt    *time.Time `json:"measured_at,omitempty"`
	ReadOnlyAt    *time.Time `json:"read_only_at,omitempty" doc:"the quota is exceeded, and from this time on workspaces mount the directories read-only"`
	Enforced      bool       `json:"enforced" doc:"the file system keeps notebooks within the quota as well"`
	NextCursor    string     `json:"next_cursor,omitempty" doc:"of the members"`

	Members []MemberFileUsage `json:"members" doc:"present members, by ID"`
}

// MemberFileUsage is the storage use of a member.
type MemberFileUsage struct {
	MemberID   int64      `json:"member_id"`
	Name       string     `json:"name"`
	UsedBytes  int64      `json:"used_bytes" doc:"in the member's directory, or with the member's user ID"`
	LimitMiB   *int64     `json:"limit_mib,omitempty" doc:"absent: unlimited"`
	ReadOnlyAt *time.Time `json:"read_only_at,omitempty" doc:"the limit is exceeded, and from this time on workspaces mount the directories read-only"`
}

func memberFileUsageOf(m models.MemberStorage) MemberFileUsage {
	return MemberFileUsage{m.MemberID, m.UserName, m.Used, bounded(m.LimitMiB), utc(m.ReadOnlyAt)}
}

// bounded is a limit; nil: unlimited.
func bounded(limit int64) *int64 {
	if models.IsUnlimited(limit) {
		return nil
	}
	return &limit
}

func (a rest) getFileUsage(ctx context.Context, in *PageOf) (*Response[FileUsage], error) {
	var u storage.Usage
	members, err := listed(in.Paging, func(m models.MemberStorage) int64 { return m.MemberID },
		func(page store.Page) (_ []models.MemberStorage, err error) {
			u, err = a.Storage.Usage(ctx, actorOf(ctx), in.ID, page)
			return u.Members, err
		}, memberFileUsageOf)
	if err != nil {
		return nil, err
	}
	return &Response[FileUsage]{FileUsage{UsedBytes: u.Used, ReservedBytes: u.Reserved, QuotaMiB: bounded(u.QuotaMiB),
			MeasuredAt: utc(u.MeasuredAt), ReadOnlyAt: utc(u.ReadOnlyAt), Enforced: a.Files.QuotaEnforced(in.ID), Members: members.Body.Items,
			NextCursor: members.Body.NextCursor}},
		nil
}

// DirectoryInput names a new directory.
type DirectoryInput struct {
	Path models.FilePath `json:"path" minLength:"1" maxLength:"12288" doc:"percent-encoded path"`
}

func (a rest) createDirectory(ctx context.Context, in *CreateIn[DirectoryInput]) (*FoundFile, error) {
	return foundFile(a.Files.MakeDirectory(ctx, actorOf(ctx), in.ID, in.Body.Path))
}

// FilePair is a source and a target.
type FilePair struct {
	From models.FilePath `json:"from" minLength:"1" maxLength:"12288" doc:"percent-encoded path"`
	To   models.FilePath `json:"to" minLength:"1" maxLength:"12288" doc:"percent-encoded path, which must not exist"`
}

func (a rest) copyFile(ctx context.Context, in *CreateIn[FilePair]) (*FoundFile, error) {
	return foundFile(a.Files.Copy(ctx, actorOf(ctx), in.ID, in.Body.From, in.Body.To))
}

func (a rest) moveFile(ctx context.Context, in *CreateIn[FilePair]) (*FoundFile, error) {
	return foundFile(a.Files.Move(ctx, actorOf(ctx), in.ID, in.Body.From, in.Body.To))
}

func (a rest) listTrash(ctx context.Context, in *PageOf) (*Response[List[TrashedFile]], error) {
	return listed(in.Paging, func(f files.Trashed) int64 { return f.ID }, func(page store.Page) ([]files.Trashed, error) {
		return a.Files.Trash(ctx, actorOf(ctx), in.ID, page)
	}, trashedFileOf)
}

// ByTrashItem names something in the trash.
type ByTrashItem struct {
	ByID
	Item int64 `path:"item" minimum:"1" doc:"ID in the trash"`
}

// TrashRestoration tells where something is restored.
type TrashRestoration struct {
	ByTrashItem
	To string `query:"to" maxLength:"12288" doc:"path in workspaces; absent: where it was"`
}

func (a rest) restoreTrash(ctx context.Context, in *TrashRestoration) (*FoundFile, error) {
	return foundFile(a.Files.Restore(ctx, actorOf(ctx), in.ID, in.Item, models.FilePath(in.To)))
}

func (a rest) purgeTrash(ctx context.Context, in *ByTrashItem) (*Nothing, error) {
	return nil, a.Files.Purge(ctx, actorOf(ctx), in.ID, in.Item)
}

// FileVersionQuery selects versions of a file.
type FileVersionQuery struct {
	ByPath
	Paging
}

// FileVersion is the content of a file before it was overwritten.
type FileVersion struct {
	ID         int64           `json:"id"`
	Path       models.FilePath `json:"path" doc:"percent-encoded path of the file"`
	Bytes      int64           `json:"bytes"`
	ReplacedAt time.Time       `json:"replaced_at"`
	ReplacedBy string          `json:"replaced_by,omitempty" doc:"name; absent if it is not known"`
}

func (a rest) listFileVersions(ctx context.Context, in *FileVersionQuery) (*Response[List[FileVersion]], error) {
	return listed(in.Paging, func(v files.Version) int64 { return v.ID }, func(page store.Page) ([]files.Version, error) {
		return a.Files.Versions(ctx, actorOf(ctx), in.ID, models.FilePath(in.Path), page)
	}, func(v files.Version) FileVersion { return FileVersion{v.ID, v.Path, v.Bytes, v.At.UTC(), v.By} })
}

func (a rest) restoreFileVersion(ctx context.Context, in *ByFileVersion) (*FoundFile, error) {
	return foundFile(a.Files.RestoreVersion(ctx, actorOf(ctx), in.ID, in.Version))
}

func (a rest) purgeFileVersion(ctx context.Context, in *ByFileVersion) (*Nothing, error) {
	_, err := a.Files.PurgeVersion(ctx, actorOf(ctx), in.ID, in.Version)
	return nil, err
}
