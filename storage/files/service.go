package files

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// Settings are what an administrator can set.
type Settings struct {
	TrashAge   time.Duration // how long the trash keeps things
	VersionAge time.Duration // how long overwritten versions are kept
	SweepEvery time.Duration
	ScanEvery  time.Duration // between measurements of a project
	ScanRate   int           // entries a second that a measurement reads; 0: no limit
	Grace      time.Duration // between the excess of a limit and read-only mounts
	Archive    ArchiveLimits // of uploaded archives
}

// Config contains the dependencies of a Service.
type Config struct {
	Store    *store.Store
	Accounts *policies.Accounts
	Access   *policies.Access
	Verdicts *storage.Verdicts
	Root     *beneath.Root // of the shared directories
	Logger   *slog.Logger

	// Owner is the owner of what is created for a user; nil: that of Root.
	Owner func(models.DirectoryUser) (beneath.Owner, error)

	Settings

	// QuotaID returns the ID of a project for the quotas of the file system, 0 for none;
	// nil: they are not used.
	QuotaID func(project int64) uint32

	// MemberOf returns the member whose files have a uid, 0 for none; nil: files are the
	// members' by their directories only.
	MemberOf func(uid uint32) int64
}

// Service is the file service.
type Service struct {
	Config
	effects   effects
	transfers transfers
	downloads downloads

	space     func() (free, size int64, err error) // of the disk of the shared directories, in bytes
	measuring sync.Mutex                           // by one goroutine at a time
	recording sync.Mutex                           // of excesses
}

// New returns the service.
func New(c Config) *Service {
	s := &Service{Config: c}
	if c.Root != nil {
		s.space = c.Root.Space
	}
	c.Store.OnRevoke(s)
	return s
}

// view is the files of a project as an actor sees them, for one call.
type view struct {
	*Service
	actor   policies.Actor
	project int64
	user    *storage.User
	owner   *beneath.Owner // of what is created; nil: that of the root
	source  string         // what is copied, if anything: it must be readable to the end
}

// viewOf reads who the actor is in a project. Who is not a member has the rights of
// everyone, if the project gives any.
func (s *Service) viewOf(ctx context.Context, actor policies.Actor, project int64) (*view, error) {
	if err := actor.CheckUser(); err != nil {
		return nil, err
	}
	u, err := s.Store.Read(ctx).DirectoryUserOf(project, actor.User.ID)
	if err != nil {
		return nil, err
	}
	user, err := s.Verdicts.Of(ctx, u)
	if err == nil && u.MemberID == 0 && !user.Rules.ForEveryone() {
		err = models.NotFound("project")
	}
	v := &view{Service: s, actor: actor, project: project, user: user}
	if err == nil && s.Owner != nil {
		var owner beneath.Owner
		owner, err = s.Owner(u)
		v.owner = &owner
	}
	return v, err
}

// viewAt is viewOf with the path that require finds for one.
func (s *Service) viewAt(ctx context.Context, actor policies.Actor, project int64, path models.FilePath,
	require func(*view, models.FilePath) (string, error)) (*view, string, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, "", err
	}
	clean, err := require(v, path)
	return v, clean, err
}

// as is a directory in which things are created for the user.
func (v *view) as(d *beneath.Dir) *beneath.Dir {
	if v.owner == nil {
		return d
	}
	return d.As(*v.owner)
}

// ProjectFiles describes the files of a project as a whole.
type ProjectFiles struct {
	Project string          // name
	Home    models.FilePath // own directory; "" for who is not a member
	Storage Allowance
	Own     *Allowance // nil for who is not a member
}

// ProjectFiles describes a project to who can read files of it.
func (s *Service) ProjectFiles(ctx context.Context, actor policies.Actor, project int64) (p ProjectFiles, err error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return p, err
	}
	q := s.Store.Read(ctx)
	row, err := q.Project(store.AllProjects, project)
	if err != nil {
		return p, err
	}
	p.Project = row.Name
	if p.Storage, err = projectAllowance(q, row); err != nil || v.user.MemberID == 0 {
		return p, err
	}
	p.Home = models.FilePath(rules.MemberDir(project, v.user.MemberID))
	m, err := q.MemberView(store.AllProjects, project, v.user.MemberID)
	if err != nil {
		return p, err
	}
	own, err := memberAllowance(q, m)
	p.Own = &own
	return p, err
}

// revocationKeys are the keys of the user's account and session, of the project with its
// memberships, and of its rules.
func (v *view) revocationKeys() []string {
	return []string{store.RevocationKey("user", v.actor.User.ID), store.RevocationKey("project", v.project),
		store.RevocationKey(store.FilesOf, v.project), store.SessionKey(v.actor.Session)}
}

// refresh is the view with the actor's present rights.
func (v *view) refresh(ctx context.Context) (*view, error) {
	actor, err := v.Accounts.RefreshActor(ctx, v.actor)
	if err != nil {
		return nil, err
	}
	return v.Service.viewOf(ctx, actor, v.project)
}

// within reports whether a path is of the project or public: those of other projects
// are reached under these.
func (v *view) within(path string) bool {
	if rules.Within(path, rules.Notebook) {
		return rules.Within(path, rules.ProjectDir(v.project))
	}
	return true
}

// resolve returns the clean path in the layout.
func (v *view) resolve(path models.FilePath) (string, error) {
	clean, ok := rules.Clean(string(path))
	if !ok {
		return "", models.Invalid("path", "is not a valid path")
	}
	return rules.Resolve(v.user.DirectoryUser, clean), nil
}

// require returns the clean path if the user has the access to it. What the user cannot
// read does not exist.
func (v *view) require(path models.FilePath, access models.FileAccess) (string, error) {
	clean, err := v.resolve(path)
	if err != nil {
		return "", err
	}
	return clean, v.check(clean, access)
}

func (v *view) requireRead(path models.FilePath) (string, error) {
	return v.require(path, models.AccessRead)
}

func (v *view) check(path string, access models.FileAccess) error {
	if models.FilePath(path) == LostPath(v.project) {
		return v.checkLost(access)
	}
	switch have := v.user.Verdict(path).Access; {
	case !have.Includes(models.AccessRead) || !v.within(path):
		return models.NotFound("file")
	case !have.Includes(access):
		return models.Forbidden("The rules of the project do not allow you to change %s.", models.VisibleName(path))
	case access == models.AccessWrite:
		return checkScope(v.actor)
	}
	return nil
}

// checkScope refuses to change files with an access token that may not open notebooks,
// which can change them too.
func checkScope(actor policies.Actor) error { return actor.CheckScope(policies.WorkspaceOpen) }

// requireDownload is require for bytes that leave the platform.
func (v *view) requireDownload(path models.FilePath) (string, error) {
	clean, err := v.require(path, models.AccessRead)
	if err == nil {
		err = v.checkDownload(clean)
	}
	return clean, err
}

func (v *view) checkDownload(path string) error {
	if v.user.Verdict(path).Download {
		return nil
	}
	return models.Forbidden("The rules of the project do not allow you to download %s.", models.VisibleName(path))
}

// checkStillDownload refuses unless the user may download a path, and all below it that
// could be downloaded before.
func (v *view) checkStillDownload(before *view, path string) error {
	if err := v.check(path, models.AccessRead); err != nil {
		return err
	}
	for _, p := range slices.Concat([]string{path}, before.user.Rules.Within(path), v.user.Rules.Within(path)) {
		if p == path || before.user.Verdict(p).Download {
			if err := v.checkDownload(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// requireChange is require for an entry that is created, replaced as a whole, or
// removed: the user must also have write access to its directory and to all that the
// rules treat differently in it.
func (v *view) requireChange(path models.FilePath) (string, error) {
	clean, err := v.require(path, models.AccessWrite)
	if err != nil {
		return clean, err
	}
	return clean, v.checkChange(clean)
}

func (v *view) checkChange(path string) error {
	if rules.Fixed(path) {
		return models.Forbidden("%s is part of the layout of the shared directories. Only the portal changes it.", models.VisibleName(path))
	}
	dir, _ := rules.Split(path)
	for _, p := range append([]string{dir, path}, v.user.Rules.Within(path)...) {
		if err := v.check(p, models.AccessWrite); err != nil {
			return err
		}
	}
	return nil
}

// checkNoRules refuses to move or delete paths that rules are about: elsewhere they
// would not hold.
func (v *view) checkNoRules(path string) error {
	if len(v.user.Rules.Within(path)) > 0 {
		return models.Conflict("There are rules about %s or about files in it. Delete these rules first.", models.VisibleName(path))
	}
	return nil
}

// parent opens the directory of a path.
func (s *Service) parent(path string) (*beneath.Dir, string, error) {
	dir, name, err := s.above(path)
	return dir, name, fileError(err)
}

// above is parent with the file system's error.
func (s *Service) above(path string) (*beneath.Dir, string, error) {
	dir, name := rules.Split(path)
	d, err := s.Root.Dir(strings.TrimPrefix(dir, "/"))
	return d, name, err
}

// metaTop is the directory of what a project keeps beside its files.
func metaTop(project int64) string { return "/.weir/projects/" + idName(project) }

// metaPath is the directory of what is not at a path itself: tmp, trash or versions.
func metaPath(project int64, path models.FilePath, kind string) string {
	if counted(path) {
		return metaTop(project) + "/" + kind
	}
	return "/.weir/public/" + kind
}

// meta opens it.
func (s *Service) meta(project int64, path models.FilePath, kind string) (*beneath.Dir, error) {
	d, err := s.Root.Dir("")
	if err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(metaPath(project, path, kind)[1:], "/") {
		next, err := d.Dir(name)
		if errors.Is(err, fs.ErrNotExist) {
			if next, err = d.Mkdir(name); errors.Is(err, fs.ErrExist) {
				next, err = d.Dir(name)
			}
		}
		d.Close()
		if err != nil {
			return nil, fileError(err)
		}
		d = next
	}
	return d, nil
}

// parent opens the directory of a path for the user.
func (v *view) parent(path string) (*beneath.Dir, string, error) {
	d, name, err := v.Service.parent(path)
	if err != nil {
		return nil, "", err
	}
	return v.as(d), name, nil
}

const (
	tmpDir      = "tmp"
	trashDir    = "trash"
	versionsDir = "versions"
)

func idName(id int64) string { return strconv.FormatInt(id, 10) }

// fileError is an error of the file system for users.
func fileError(err error) error {
	switch _, known := errors.AsType[*models.Error](err); {
	case err == nil, known:
		return err
	case errors.Is(err, beneath.ErrIrregular):
		return models.Conflict("This is a link or a special file. It can only be used in a notebook.")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, beneath.ErrName):
		return models.NotFound("file")
	case errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
		return models.Conflict("There is already a file or directory with this name.")
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return models.NoCapacity("", "The disk of the shared directories is full.")
	case errors.Is(err, unix.EXDEV):
		return models.Conflict("The directories are on different file systems. Copy the files in a notebook.")
	case errors.Is(err, fs.ErrPermission):
		return models.Conflict("The permissions of a file or directory do not let the portal use it. In a notebook, run chmod -R u+rwX on it.")
	case errors.Is(err, unix.ENAMETOOLONG):
		return models.Conflict("Directories are nested too deeply: a path has more than %d bytes.", rules.MaxPath)
	case errors.Is(err, unix.EISDIR):
		return models.Conflict("This is a directory.")
	case errors.Is(err, unix.EAGAIN):
		return models.Conflict("The file is in use. Try again in a moment.")
	default:
		return err
	}
}
