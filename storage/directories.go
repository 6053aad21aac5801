package storage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"weir/models"
)

// The layout in every workspace; for write access, see [AccessTo].
//
//	/notebook/{project}/project_algorithm, project_model, project_dataset
//	/notebook/{project}/{member}
//	/public_algorithm, /public_model, /public_dataset
//	/home/jovyan                        the member's own directory again
const notebookDir = "notebook"

var (
	projectDirs = []string{"project_algorithm", "project_model", "project_dataset"}
	publicDirs  = []string{"public_algorithm", "public_model", "public_dataset"}
)

// HomeDir is where a member's own directory is mounted a second time.
const HomeDir = "/home/jovyan"

// TeamLink is a link in a member's directory to the project's directories, so that
// the notebook's file browser, which starts at home, shows them.
const TeamLink = "team"

// Directories are the shared directories. All files have one owner, the user of the
// workspaces: only the mounts determine a member's access, not file modes, so that
// no umask can break sharing.
type Directories struct {
	root     string
	uid, gid int
}

// New returns the directories under root. Their owner is uid and gid if this process
// is root, and otherwise the user of this process.
func New(root string, uid, gid int) (*Directories, error) {
	if os.Geteuid() != 0 {
		uid, gid = os.Geteuid(), os.Getegid()
	}
	d := &Directories{root: root, uid: uid, gid: gid}
	for _, dir := range append([]string{notebookDir}, publicDirs...) {
		if err := d.make(dir); err != nil {
			return nil, err
		}
	}
	return d, nil
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

func projectPath(project int64) string {
	return filepath.Join(notebookDir, strconv.FormatInt(project, 10))
}

// MakeProject creates a project's directories.
func (d *Directories) MakeProject(_ context.Context, project int64) error {
	for _, name := range projectDirs {
		if err := d.make(filepath.Join(projectPath(project), name)); err != nil {
			return err
		}
	}
	return nil
}

// MakeMember creates a member's own directory.
func (d *Directories) MakeMember(_ context.Context, project, member int64) error {
	dir := filepath.Join(projectPath(project), strconv.FormatInt(member, 10))
	if err := d.make(dir); err != nil {
		return err
	}
	link := filepath.Join(d.root, dir, TeamLink)
	err := os.Symlink("/"+projectPath(project), link)
	if errors.Is(err, fs.ErrExist) {
		return nil // also if it is a file of the member
	}
	if err != nil {
		return err
	}
	return os.Lchown(link, d.uid, d.gid)
}

// EnsureMounts returns the mounts of a member's workspace, parents before children, and
// creates missing directories.
func (d *Directories) EnsureMounts(ctx context.Context, h models.DirectoryUser) ([]models.Mount, error) {
	if err := d.MakeProject(ctx, h.ProjectID); err != nil {
		return nil, err
	}
	for _, member := range append([]int64{h.MemberID}, h.Inherits...) {
		if err := d.MakeMember(ctx, h.ProjectID, member); err != nil {
			return nil, err
		}
	}
	return d.Mounts(h), nil
}

// Mounts returns the result of EnsureMounts without creating anything.
func (d *Directories) Mounts(h models.DirectoryUser) []models.Mount {
	root := projectPath(h.ProjectID)
	var mounts []models.Mount
	add := func(dir, target string) {
		mounts = append(mounts, models.Mount{Source: filepath.Join(d.root, dir), Target: target, ReadOnly: AccessTo(h, "/"+dir) != ReadWrite})
	}
	for _, name := range publicDirs {
		add(name, "/"+name)
	}
	// The whole directory of the project is mounted read-only, so that the
	// directories of new members appear in running workspaces.
	add(root, "/"+root)
	for _, name := range projectDirs {
		add(filepath.Join(root, name), filepath.Join("/", root, name))
	}
	for _, member := range h.Inherits {
		former := filepath.Join(root, strconv.FormatInt(member, 10))
		add(former, "/"+former)
	}
	own := filepath.Join(root, strconv.FormatInt(h.MemberID, 10))
	add(own, "/"+own)
	add(own, HomeDir)
	return mounts
}
