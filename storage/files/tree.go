package files

import (
	"context"
	"errors"
	"slices"
	"strings"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// TreeDirectory is a directory in a tree, with the directories in it if it is open.
type TreeDirectory struct {
	Name        string          `json:"name" doc:"name for people: what cannot be shown is replaced"`
	Path        models.FilePath `json:"path" doc:"percent-encoded path"`
	Owner       string          `json:"owner,omitempty" doc:"name of the member in whose own directory this is"`
	Open        bool            `json:"open" doc:"the directories in it are listed"`
	Directories []TreeDirectory `json:"directories,omitempty" doc:"directories in it, by name"`
	Complete    bool            `json:"complete" doc:"false: there can be more directories in it"`
}

const (
	maxTreeListed = 200    // directories in a directory of a tree
	maxTreeRead   = 20_000 // entries of a directory that are read for them
)

// Tree lists the roots with the directories that lead to a path, those beside them and
// those in it. It leaves out what the user cannot read.
func (s *Service) Tree(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) ([]TreeDirectory, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, err
	}
	clean := "/"
	if path != "" && path != "/" {
		if clean, err = v.require(path, models.AccessRead); err != nil {
			return nil, err
		}
	}
	return v.tree(ctx, clean)
}

// tree is Tree of a clean path that the user can read, or of "/".
func (v *view) tree(ctx context.Context, path string) ([]TreeDirectory, error) {
	roots, err := v.roots()
	if err != nil {
		return nil, err
	}
	var tree []TreeDirectory
	for _, e := range roots.Entries {
		tree = append(tree, TreeDirectory{Name: e.Name, Path: e.Path, Complete: true})
	}
	owned, err := v.expand(ctx, tree, path)
	if err != nil {
		return nil, err
	}
	return tree, v.nameOwners(ctx, owned...)
}

// expand opens those of the directories in which a path is, down to the path.
func (v *view) expand(ctx context.Context, list []TreeDirectory, path string) (owned []ownedPath, err error) {
	for i := range list {
		d := &list[i]
		owned = append(owned, ownedPath{d.Path, &d.Owner})
		if !rules.Within(path, string(d.Path)) {
			continue
		}
		if err := v.openBranch(ctx, d, path); err != nil {
			return nil, err
		}
		below, err := v.expand(ctx, d.Directories, path)
		if err != nil {
			return nil, err
		}
		owned = append(owned, below...)
	}
	return owned, nil
}

func (v *view) openBranch(ctx context.Context, d *TreeDirectory, path string) error {
	dir, err := v.Root.Dir(strings.TrimPrefix(string(d.Path), "/"))
	if gone(err) {
		return nil
	}
	if err != nil {
		return fileError(err)
	}
	defer dir.Close()
	names, complete, err := v.directories(ctx, dir, string(d.Path))
	if err != nil {
		return fileError(err)
	}
	if len(names) > maxTreeListed {
		names, complete = names[:maxTreeListed], false
	}
	// What the path leads through is listed in any case.
	if next := nameBelow(path, string(d.Path)); next != "" && !slices.Contains(names, next) {
		if info, err := dir.Stat(next); err == nil && info.Kind == beneath.Directory {
			names = append(names, next)
		}
	}
	d.Open, d.Complete = true, complete
	for _, name := range names {
		d.Directories = append(d.Directories, TreeDirectory{Name: models.VisibleName(name),
			Path: models.FilePath(rules.Join(string(d.Path), name)), Complete: true})
	}
	return nil
}

// nameBelow is the name in a directory through which a path below it leads.
func nameBelow(path, dir string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(path[len(dir):], "/"), "/")
	return name
}

// directories are the sorted names of the directories in a directory that the user can
// read. Of a large directory only a part is read.
func (v *view) directories(ctx context.Context, dir *beneath.Dir, path string) (names []string, complete bool, err error) {
	read := 0
	complete = true
	for batch, err := range dir.Names() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, false, err
		}
		if read += len(batch); read > maxTreeRead {
			complete = false
			break
		}
		for _, name := range batch {
			if v.user.Verdict(rules.Join(path, name)).Access == models.AccessNone {
				continue
			}
			if info, err := dir.Stat(name); err == nil && info.Kind == beneath.Directory {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names, complete, nil
}
