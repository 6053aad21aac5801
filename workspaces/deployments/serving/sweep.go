package serving

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"weir/models"
	"weir/workspaces/shard/split"
)

// Remove deletes what a deployment has on the disk. Sweep deletes its parts, unless another
// deployment has them, too.
func (s *Store) Remove(d models.Deployment) error {
	s.mu.Lock()
	delete(s.kept, d.ID)
	s.mu.Unlock()
	return os.RemoveAll(s.directory(d))
}

// Sweep deletes what no deployment uses that live returns: directories of other deployments,
// and the parts that are in no directory. It does nothing while parts are written.
func (s *Store) Sweep(ctx context.Context, live func(context.Context) ([]int64, error)) error {
	if !s.writing.TryLock() {
		return nil
	}
	defer s.writing.Unlock()
	list, err := os.ReadDir(s.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	projects := map[string][]fs.DirEntry{}
	for _, e := range list {
		if strings.HasPrefix(e.Name(), projectPrefix) {
			entries, failed := os.ReadDir(filepath.Join(s.Dir, e.Name()))
			projects[e.Name()], err = entries, errors.Join(err, failed)
		}
	}
	// Those that live returns are read after what is on the disk: a deployment is known before
	// anything of it is written.
	ids, failed := live(ctx)
	if err := errors.Join(err, failed); err != nil {
		return err
	}
	used := map[string]bool{}
	for _, id := range ids {
		used[fmt.Sprint(deploymentPrefix, id)] = true
	}
	for _, e := range list {
		dir := filepath.Join(s.Dir, e.Name())
		switch {
		case ctx.Err() != nil: // another server may lead
			return errors.Join(err, ctx.Err())
		case strings.HasPrefix(e.Name(), deploymentPrefix) && !used[e.Name()]: // of an earlier version
			err = errors.Join(err, os.RemoveAll(dir))
		case strings.HasPrefix(e.Name(), projectPrefix):
			err = errors.Join(err, sweepProject(ctx, dir, projects[e.Name()], used))
		}
	}
	return err
}

// sweepProject deletes of a project's entries the deployments that are not used, the parts that are in
// the directory of no deployment, and the project's directory when nothing is left.
func sweepProject(ctx context.Context, dir string, list []fs.DirEntry, deployments map[string]bool) (err error) {
	used := false
	if slices.ContainsFunc(list, func(f fs.DirEntry) bool { return split.IsUnfinished(f.Name()) }) {
		err = split.RemoveUnfinished(dir)
	}
	for _, f := range list {
		if ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if strings.HasPrefix(f.Name(), deploymentPrefix) && !deployments[f.Name()] {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, f.Name())))
		}
	}
	for _, f := range list {
		info, failed := f.Info()
		switch {
		case errors.Is(failed, fs.ErrNotExist): // it has just been deleted
		case failed != nil:
			err = errors.Join(err, failed)
		case strings.HasPrefix(f.Name(), deploymentPrefix):
			used = true
		case !strings.HasSuffix(f.Name(), ".safetensors"):
		case info.Sys().(*syscall.Stat_t).Nlink > 1:
			used = true
		default:
			err = errors.Join(err, os.Remove(filepath.Join(dir, f.Name())))
		}
	}
	if used || err != nil {
		return err
	}
	for _, at := range []string{filepath.Join(dir, split.ManifestName), dir} { // unless something new is in it
		if err := os.Remove(at); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTEMPTY) {
			return err
		}
	}
	return nil
}
