package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/workspaces/runtime"
)

var _ runtime.Refresher = (*Runtime)(nil)

// mounted is what is mounted in a sandbox, parents before the directories in them.
type mounted struct {
	Mounts   []models.Mount `json:"mounts"`
	Points   []string       `json:"points"`   // the outermost targets at the start: the root cannot get others
	Covered  []string       `json:"covered"`  // targets of former mounts, over which others were mounted
	Changing bool           `json:"changing"` // a change has not ended: any of the mounts can be missing
}

// Refresh mounts other shared directories in a running workspace; see
// [runtime.Refresher]. Where only the access differs, the mount is changed, so that it
// also holds for programs that work in the directory. Over other mounts, new ones are
// mounted: what a program has open or works in, it keeps.
func (r *Runtime) Refresh(_ context.Context, state runtime.State, mounts []models.Mount) error {
	if !canStage() {
		return errors.ErrUnsupported
	}
	in, err := r.parseState(state)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old, err := in.mounted()
	if errors.Is(err, os.ErrNotExist) { // of an earlier version
		return errors.ErrUnsupported
	}
	if err != nil {
		return err
	}
	mounts, err = old.withPoints(old.withPresent(mounts))
	if err != nil || !old.Changing && slices.Equal(old.Mounts, mounts) {
		return err
	}
	return in.changeMounts(old, mounts)
}

// changeMounts records the change before it is made, and its end: after a crash, a
// refresh mounts all directories anew.
func (in *instance) changeMounts(old mounted, mounts []models.Mount) error {
	view, err := in.openView(old)
	if err != nil {
		return err
	}
	defer view.namespace.Close()
	if err := in.saveMounted(old.during(mounts)); err != nil {
		return err
	}
	err = onSpareThread(func() error {
		if err := privateMounts(); err != nil {
			return err
		}
		trees, err := cloneTrees(mounts)
		defer closeAll(trees)
		if err == nil {
			err = assemble(mounts, trees)
		}
		if err != nil {
			return err
		}
		return view.replace(old, mounts, trees)
	})
	if err != nil {
		return fmt.Errorf("refresh the mounts of workspace %d: %w", in.Workspace, err)
	}
	return in.saveMounted(mounted{Mounts: mounts, Points: old.Points, Covered: old.targets()})
}

// targets are where something is mounted, or was.
func (m mounted) targets() []string {
	list := slices.Clone(m.Covered)
	for _, n := range m.Mounts {
		list = append(list, n.Target)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// during is what can be mounted while old becomes mounts.
func (m mounted) during(mounts []models.Mount) mounted {
	all := slices.Clone(m.Mounts)
	for _, n := range mounts {
		if _, ok := at(all, n.Target); !ok {
			all = append(all, n)
		}
	}
	return mounted{Mounts: runtime.Spec{Mounts: all}.SortedMounts(), Points: m.Points, Covered: m.Covered, Changing: true}
}

// withPresent returns the mounts with what is to be seen where only at present something
// is mounted: what the mount above shows, with its access. For programs that work in such a
// mount, it stays.
func (m mounted) withPresent(mounts []models.Mount) []models.Mount {
	all := slices.Clone(mounts)
	for _, p := range m.Mounts {
		above, _ := at(mounts, mountAbove(mounts, p.Target))
		if _, planned := at(mounts, p.Target); planned || above.Source == "" {
			continue
		}
		source := above.Source + p.Target[len(above.Target):]
		if info, err := os.Lstat(source); err == nil && info.IsDir() {
			all = append(all, models.Mount{Source: source, Target: p.Target, ReadOnly: above.ReadOnly})
		}
	}
	return all
}

// withPoints returns the mounts with what they need to be mounted on: where the root of
// the sandbox has no directory for one, but for a directory above it, a mount without a
// source has the directories. Such a mount also covers an old one without a successor.
func (m mounted) withPoints(mounts []models.Mount) ([]models.Mount, error) {
	mounts = slices.Clone(mounts)
	for _, target := range outermost(m.Mounts) {
		if _, ok := at(mounts, target); !ok && mountAbove(mounts, target) == "" {
			mounts = append(mounts, models.Mount{Target: target, ReadOnly: true})
		}
	}
	for _, target := range outermost(mounts) {
		if slices.ContainsFunc(m.Points, func(point string) bool { return within(point, target) }) {
			continue
		}
		i := slices.IndexFunc(m.Points, func(point string) bool { return within(target, point) })
		if i < 0 {
			return nil, errors.ErrUnsupported
		}
		if _, ok := at(mounts, m.Points[i]); !ok {
			mounts = append(mounts, models.Mount{Target: m.Points[i], ReadOnly: true})
		}
	}
	return runtime.Spec{Mounts: mounts}.SortedMounts(), nil
}

// view is the mount namespace of a sandbox.
type view struct {
	namespace *os.File
	foreign   []string // where the host has mounted something in a shared directory
}

// openView opens the namespace of a sandbox. The process is checked when it is open: a
// number can be another process's by then.
func (in *instance) openView(old mounted) (view, error) {
	rep := in.sandboxStatus()
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", rep.Child))
	if err != nil {
		return view{}, err
	}
	table, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", rep.Child))
	if err == nil && (rep.ExitCode != nil || !in.innerAlive(rep)) {
		err = errors.New("the sandbox has ended")
	}
	if err != nil {
		return view{}, errors.Join(err, f.Close())
	}
	v, ours := view{namespace: f}, old.targets()
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			if path := unescape(fields[4]); !slices.Contains(ours, path) {
				v.foreign = append(v.foreign, path)
			}
		}
	}
	return v, nil
}

// unescape returns a path of mountinfo.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace

// replace moves this thread to the namespace and covers old mounts with new ones, each with
// all that is in it at once: there is no moment at which what is hidden in it can be seen.
// Nothing is unmounted, because those who work in a mount would then see what is hidden
// in it.
func (v view) replace(old mounted, mounts []models.Mount, trees []*os.File) error {
	if err := unix.Setns(int(v.namespace.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("setns: %w", err)
	}
	kept := map[string]bool{}
	if !old.Changing {
		kept = keep(old.Mounts, mounts, v.setAccess)
	}
	for _, m := range old.Mounts {
		if !kept[m.Target] && !writable(mounts, m.Target) {
			v.setAccess(models.Mount{Target: m.Target, ReadOnly: true}) // if it can be: for the programs that work in it
		}
	}
	for i, m := range mounts {
		if above := mountAbove(mounts, m.Target); kept[m.Target] || above != "" && !kept[above] { // is there already
			continue
		}
		if err := attach(trees[i], m.Target); err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	return nil
}

// keep returns the targets whose mounts stay: the same directory, in a mount that stays.
// change gives such a mount another access.
func keep(old, mounts []models.Mount, change func(models.Mount) bool) map[string]bool {
	kept := map[string]bool{}
	for _, m := range mounts {
		was, ok := at(old, m.Target)
		above := mountAbove(mounts, m.Target)
		stays := ok && m.Source != "" && was.Source == m.Source && above == mountAbove(old, m.Target) && (above == "" || kept[above])
		kept[m.Target] = stays && (was.ReadOnly == m.ReadOnly || change(m))
	}
	return kept
}

// setAccess changes a mount. It cannot be read-only while a file is open for writing, and
// what the host has mounted in the directory would stay as it is.
func (v view) setAccess(m models.Mount) bool {
	if slices.ContainsFunc(v.foreign, func(path string) bool { return within(path, m.Target) }) {
		return false
	}
	attr := unix.MountAttr{Attr_clr: unix.MOUNT_ATTR_RDONLY}
	if m.ReadOnly {
		attr = unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	return unix.MountSetattr(unix.AT_FDCWD, m.Target, unix.AT_SYMLINK_NOFOLLOW, &attr) == nil
}

// cloneTrees returns the sources as mounts that are nowhere yet, with their access.
func cloneTrees(mounts []models.Mount) (trees []*os.File, err error) {
	for _, m := range mounts {
		tree, err := treeOf(m, mounts)
		if err != nil {
			return trees, err
		}
		trees = append(trees, tree)
	}
	return trees, nil
}

// assemble mounts the trees in each other, for this thread, and replaces each by a copy with
// those that are in it.
func assemble(mounts []models.Mount, trees []*os.File) error {
	stage, err := filepath.EvalSymlinks(stageDir)
	if err == nil {
		err = unix.Mount("tmpfs", stage, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
	}
	if err != nil {
		return err
	}
	for i, m := range mounts {
		if mountAbove(mounts, m.Target) == "" {
			err = os.MkdirAll(stage+m.Target, 0o755)
		}
		if err == nil {
			err = attach(trees[i], stage+m.Target)
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.Target, err)
		}
	}
	for i, tree := range trees {
		fd, err := unix.OpenTree(int(tree.Fd()), "", openTree)
		if err != nil {
			return fmt.Errorf("%s: %w", tree.Name(), err)
		}
		trees[i] = os.NewFile(uintptr(fd), tree.Name())
		tree.Close()
	}
	return nil
}

func treeOf(m models.Mount, mounts []models.Mount) (*os.File, error) {
	fd, err := -1, error(nil)
	if m.Source == "" {
		fd, err = newPoints(m.Target, mounts)
	} else {
		fd, err = cloneTree(m.Source)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Target, err)
	}
	tree := os.NewFile(uintptr(fd), m.Target)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV} // as bubblewrap does
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", m.Target, err), tree.Close())
	}
	return tree, nil
}

func cloneTree(source string) (int, error) {
	f, err := openSource(stagedSource{path: source, noLinks: true})
	if err != nil {
		return -1, err
	}
	defer f.Close()
	return unix.OpenTree(int(f.Fd()), "", openTree)
}

// openTree has the tree copied with all mounts in it.
const openTree = unix.OPEN_TREE_CLONE | unix.OPEN_TREE_CLOEXEC | unix.AT_EMPTY_PATH | unix.AT_RECURSIVE

// newPoints returns a file system with a directory for each of the mounts below a point.
func newPoints(point string, mounts []models.Mount) (int, error) {
	context, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(context)
	if err := errors.Join(unix.FsconfigSetString(context, "mode", "755"), unix.FsconfigCreate(context)); err != nil {
		return -1, err
	}
	fd, err := unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, 0)
	for _, m := range mounts {
		if err == nil && m.Target != point && mountAbove(mounts, m.Target) == point {
			err = makeDirs(fd, m.Target[len(point)+1:])
		}
	}
	return fd, err
}

// makeDirs creates a directory and those above it, whatever the umask.
func makeDirs(root int, path string) (err error) {
	for i := 0; i <= len(path) && err == nil; i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		if err = unix.Mkdirat(root, path[:i], 0o755); err == nil || errors.Is(err, unix.EEXIST) {
			err = unix.Fchmodat(root, path[:i], 0o755, 0)
		}
	}
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// attach mounts a tree. Members can write in directories above the target, so links are
// not followed.
func attach(tree *os.File, target string) error {
	point, err := openSource(stagedSource{path: target, noLinks: true})
	if err != nil {
		return err
	}
	defer point.Close()
	return unix.MoveMount(int(tree.Fd()), "", int(point.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// at returns the mount at a target.
func at(mounts []models.Mount, target string) (models.Mount, bool) {
	i := slices.IndexFunc(mounts, func(m models.Mount) bool { return m.Target == target })
	if i < 0 {
		return models.Mount{}, false
	}
	return mounts[i], true
}

// mountAbove is the innermost target that contains another, or "".
func mountAbove(mounts []models.Mount, target string) (above string) {
	for _, m := range mounts {
		if m.Target != target && within(target, m.Target) && len(m.Target) > len(above) {
			above = m.Target
		}
	}
	return above
}

// writable reports whether a directory is in a mount for writing.
func writable(mounts []models.Mount, target string) bool {
	m, ok := at(mounts, target)
	if !ok {
		m, ok = at(mounts, mountAbove(mounts, target))
	}
	return ok && !m.ReadOnly
}

// outermost returns the targets that are in no other.
func outermost(mounts []models.Mount) (targets []string) {
	for _, m := range mounts {
		if mountAbove(mounts, m.Target) == "" {
			targets = append(targets, m.Target)
		}
	}
	return targets
}

func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }

func (in *instance) mounted() (m mounted, err error) {
	b, err := os.ReadFile(in.mountsFile())
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	return m, err
}

func (in *instance) saveMounted(m mounted) error {
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return replaceFile(in.mountsFile(), b)
}
