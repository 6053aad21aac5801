package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// metaDir contains what belongs to the shared directories and is mounted nowhere.
const metaDir = "/.weir"

// EmptyDir is mounted over what a member may not see.
const EmptyDir = metaDir + "/empty"

// What runs and parts of deployments in a cluster have left, and the files of deployments there.
const (
	runsDir        = metaDir + "/runs"
	partsDir       = metaDir + "/parts"
	deploymentsDir = metaDir + "/deployments"
)

// DeploymentsDir is the directory with one of each project, which the parts of its deployments mount.
// Each generation of the database has its own: a restored copy leaves that of the original alone.
func DeploymentsDir(generation int64) string {
	if generation <= 1 {
		return deploymentsDir
	}
	return fmt.Sprintf("%s-r%d", deploymentsDir, generation)
}

// TeamLink is a link in a member's directory to the project's directories, so that
// the notebook's file browser, which starts at home, shows them.
const TeamLink = "team"

// Directories are the shared directories. The mounts determine a member's access: the
// files of a project have its group, which can do what their owner can, or, without IDs
// for members, they all have one owner.
type Directories struct {
	root     string
	uid, gid int
	ids      rules.IDRange
	verdicts *Verdicts

	// FollowsLinks means that who mounts a directory resolves its path later and follows
	// links, as the kubelet does: then only directories of the layout are mounted, which
	// members cannot replace.
	FollowsLinks bool
}

// New returns the directories under root. Their owner is uid and gid if this process
// is root, and otherwise the user of this process. verdicts decide what is mounted.
func New(root string, uid, gid int, verdicts *Verdicts) (*Directories, error) {
	if os.Geteuid() != 0 {
		uid, gid = os.Geteuid(), os.Getegid()
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(root)
	if err != nil {
		return nil, err
	}
	d := &Directories{root: root, uid: uid, gid: gid, verdicts: verdicts}
	for _, dir := range append([]string{rules.Notebook, EmptyDir}, rules.PublicDirs()...) {
		if err := d.make(dir); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Root is the directory on this machine of which all shared directories are parts,
// without symbolic links.
func (d *Directories) Root() string { return d.root }

// RunsDir is a directory on this machine that all servers share and no pod can mount.
func (d *Directories) RunsDir() string { return d.root + runsDir }

// PartsDir is the same for the parts of deployments.
func (d *Directories) PartsDir() string { return d.root + partsDir }

// MemberOf is the member whose files have a user ID; 0: none.
func (d *Directories) MemberOf(uid uint32) int64 { return d.ids.Member(int64(uid)) }

// QuotaID is the ID of a project for the quotas of the file system: that of its group;
// 0: none.
func (d *Directories) QuotaID(project int64) uint32 {
	if d.ids.Empty() {
		return 0
	}
	id, err := d.ids.Group(project)
	if err != nil {
		return 0
	}
	return uint32(id)
}

// OpenRoot opens the root for the file service.
func (d *Directories) OpenRoot() (*beneath.Root, error) {
	return beneath.OpenRoot(d.root, beneath.Owner{UID: d.uid, GID: d.gid, Set: os.Geteuid() == 0})
}

// UseIDs gives each member and project IDs of their own; an empty range, none. The files
// of the projects are taken over in the background: see [Owners]. Once
// used, a range can grow, but not begin elsewhere: the IDs of existing files would be
// others'.
func (d *Directories) UseIDs(ctx context.Context, r rules.IDRange) error {
	d.ids = r
	return d.verdicts.store.InTx(ctx, func(q *store.Queries) error {
		first, err := q.FirstFileID()
		if err != nil || first == r.First {
			return err
		}
		if first != 0 && !r.Empty() {
			return fmt.Errorf("id-range begins at %d, but there are files with IDs from %d: let it begin there", r.First, first)
		}
		return q.SetFirstFileID(r.First)
	})
}

// IDs returns the user of a member and the group of the project; 0: all share one.
func (d *Directories) IDs(u models.DirectoryUser) (uid, gid int64, err error) {
	if d.ids.Empty() || u.AwaitsTakeover {
		return 0, 0, nil
	}
	if gid, err = d.ids.Group(u.ProjectID); err != nil || u.MemberID == 0 {
		return int64(d.uid), gid, err
	}
	uid, err = d.ids.User(u.MemberID)
	return uid, gid, err
}

// Owner is the owner of what the file service creates for a user.
func (d *Directories) Owner(u models.DirectoryUser) (beneath.Owner, error) {
	uid, gid, err := d.IDs(u)
	if gid == 0 {
		return beneath.Owner{UID: d.uid, GID: d.gid, Set: os.Geteuid() == 0}, err
	}
	return beneath.Owner{UID: int(uid), GID: int(gid), Set: true, Shared: true}, nil
}

// make creates root/name and its parents if they do not exist, and sets its owner.
func (d *Directories) make(name string) error {
	path := filepath.Join(d.root, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		return err
	}
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("storage: %s is not a directory", path)
	}
	return os.Lchown(path, d.uid, d.gid)
}

// makeIn creates directories of a project's layout, but not again: see requireFiles.
func (d *Directories) makeIn(ctx context.Context, project int64, dirs ...string) error {
	if err := d.requireFiles(ctx, project); err != nil {
		return err
	}
	one, err := d.haveOneOwner(ctx, project)
	if err != nil {
		return err
	}
	for _, dir := range append([]string{rules.ProjectDir(project)}, dirs...) {
		if !one {
			err = d.makeShared(project, dir)
		} else if dir != rules.ProjectDir(project) {
			err = d.make(dir)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// haveOneOwner reports whether the files of a project belong to the owner of all.
func (d *Directories) haveOneOwner(ctx context.Context, project int64) (bool, error) {
	if d.ids.Empty() {
		return true, nil
	}
	return d.verdicts.store.Read(ctx).FilesAwaitTakeover(project)
}

// makeShared creates a directory of a project's layout with its own owner. Members can
// write in no directory above it.
func (d *Directories) makeShared(project int64, dir string) error {
	root, err := beneath.OpenRoot(d.root, beneath.Owner{})
	if err != nil {
		return err
	}
	defer root.Close()
	above, name := rules.Split(dir)
	parent, err := root.Dir(above[1:])
	if err != nil {
		return err
	}
	defer parent.Close()
	made, err := parent.Mkdir(name)
	if errors.Is(err, fs.ErrExist) {
		made, err = parent.Dir(name)
	}
	if err != nil {
		return err
	}
	defer made.Close()
	info, err := parent.Stat(name)
	if err != nil {
		return err
	}
	if err := d.setAttributes(parent, info, project, dir); err != nil || dir == rules.ProjectDir(project) {
		return err
	}
	return made.Share()
}

// MakeProject creates a project's directories.
func (d *Directories) MakeProject(ctx context.Context, project int64) error {
	return d.makeIn(ctx, project, rules.TeamDirs(project)...)
}

// requireFiles refuses a project whose directory was there and is not any more: the
// files are elsewhere, and an empty directory would hide that.
func (d *Directories) requireFiles(ctx context.Context, project int64) error {
	dir := rules.ProjectDir(project)
	_, missing := os.Lstat(filepath.Join(d.root, dir))
	if !errors.Is(missing, fs.ErrNotExist) {
		return missing
	}
	use, err := d.verdicts.store.Read(ctx).StorageUse(project)
	if err != nil || use.MeasuredAt == nil {
		return err
	}
	return models.Unavailable(missing, "The project's files are not in the shared storage. Administrators have to mount or copy the directory %s.", dir)
}

// MakeMember creates a member's own directory.
func (d *Directories) MakeMember(ctx context.Context, project, member int64) error {
	dir := rules.MemberDir(project, member)
	if err := d.makeIn(ctx, project, dir); err != nil {
		return err
	}
	link := filepath.Join(d.root, dir, TeamLink)
	err := os.Symlink(rules.ProjectDir(project), link)
	if errors.Is(err, fs.ErrExist) {
		return nil // also if it is a file of the member
	}
	if err != nil {
		return err
	}
	info, err := os.Lstat(filepath.Dir(link))
	if err != nil {
		return err
	}
	uid, gid := OwnerOf(info)
	return os.Lchown(link, uid, gid)
}
