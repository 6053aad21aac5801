package files

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

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

// counted reports whether the files at a path count for a project. The public
// directories are nobody's.
func counted(path models.FilePath) bool { return rules.Within(string(path), rules.Notebook) }

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
