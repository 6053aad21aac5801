package files

import (
	"context"
	"io/fs"
	"strings"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

const (
	maxFound   = 1000
	maxVisited = 200_000 // entries of a search
)

// Found is the result of a search.
type Found struct {
	Directory Entry // that was searched
	Tree      []TreeDirectory
	Entries   []Entry
	Complete  bool // false: the search ended at a bound
}

// Search finds entries below a directory whose name contains a text, in any case.
func (s *Service) Search(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, text string) (f Found, err error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireRead)
	if err != nil {
		return f, err
	}
	if f.Directory, err = v.stat(clean); err != nil {
		return f, err
	}
	if f.Tree, err = v.tree(ctx, clean); err != nil {
		return f, err
	}
	if err := v.nameOwners(ctx, ownedPath{f.Directory.Path, &f.Directory.Owner}); err != nil {
		return f, err
	}
	wanted, visited := strings.ToLower(text), 0
	f.Complete = true
	err = v.walk(ctx, clean, passUnreadable, func(path string, info beneath.Info, _ *beneath.Dir) error {
		_, name := rules.Split(path)
		if strings.Contains(strings.ToLower(name), wanted) {
			f.Entries = append(f.Entries, v.entry(path, info))
		}
		if visited++; visited >= maxVisited || len(f.Entries) >= maxFound {
			f.Complete = false
			return fs.SkipAll
		}
		return nil
	})
	return f, err
}
