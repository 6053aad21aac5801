package files

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// Sort is by what a list is sorted, in either order; directories always come first.
type Sort string

const (
	ByName     Sort = "name"
	BySize     Sort = "size"
	ByModified Sort = "modified"
)

// ListQuery selects entries of a directory.
type ListQuery struct {
	Path       models.FilePath
	Sort       Sort
	Descending bool
	Cursor     string
	Limit      int  // 1 to maxListed
	Tree       bool // with the tree of directories
}

const (
	maxListed  = 1000
	maxEntries = 200_000 // of a directory
)

// Listing is one page of a directory.
type Listing struct {
	Directory Entry
	Entries   []Entry
	Next      string // cursor of the next page; "" on the last
	Tree      []TreeDirectory
}

// List lists a directory, without entries that the user cannot read. The list of "/" is
// the roots.
func (s *Service) List(ctx context.Context, actor policies.Actor, project int64, in ListQuery) (l Listing, err error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return l, err
	}
	if in.Path == "/" || in.Path == "" {
		if l, err = v.roots(); err == nil && in.Tree {
			l.Tree, err = v.tree(ctx, "/")
		}
		return l, err
	}
	path, err := v.require(in.Path, models.AccessRead)
	if err != nil {
		return l, err
	}
	if in.Tree {
		if l.Tree, err = v.tree(ctx, path); err != nil {
			return l, err
		}
	}
	dir, err := s.Root.Dir(strings.TrimPrefix(path, "/"))
	if err != nil {
		return l, fileError(err)
	}
	defer dir.Close()
	self, err := v.stat(path)
	if err != nil {
		return l, err
	}
	l.Directory = self
	keys, err := v.keys(ctx, dir, path, in)
	if err != nil {
		return l, err
	}
	if err := v.page(&l, dir, path, keys, in); err != nil {
		return l, err
	}
	owned := []ownedPath{{l.Directory.Path, &l.Directory.Owner}}
	for i := range l.Entries {
		owned = append(owned, ownedPath{l.Entries[i].Path, &l.Entries[i].Owner})
	}
	return l, v.nameOwners(ctx, owned...)
}

// roots are the directories of the layout that the user can read.
func (v *view) roots() (l Listing, err error) {
	l.Directory = Entry{Path: "/", Kind: beneath.Directory, Verdict: rules.Verdict{Access: models.AccessNone}}
	for _, path := range append([]string{rules.ProjectDir(v.project)}, rules.PublicDirs()...) {
		e, err := v.stat(path)
		if err != nil && models.KindOf(err) != models.KindNotFound {
			return l, err
		}
		if err == nil {
			l.Entries = append(l.Entries, e)
		}
	}
	if len(l.Entries) == 0 {
		return l, models.NotFound("file")
	}
	return l, nil
}

// key is by what an entry is sorted.
type key struct {
	file   bool
	number int64 // bytes or a time
	name   string
}

// compare compares keys in the order of the list.
func (in ListQuery) compare(a, b key) int {
	if a.file != b.file {
		return map[bool]int{false: -1, true: 1}[a.file]
	}
	if in.Descending {
		a, b = b, a
	}
	return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.name, b.name))
}

// cursor is the key as text.
func (k key) cursor() string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%t %d %s", k.file, k.number, k.name))
}

func keyOf(cursor string) (k key, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	parts := bytes.SplitN(raw, []byte(" "), 3)
	if err != nil || len(parts) != 3 {
		return k, false
	}
	k.number, err = strconv.ParseInt(string(parts[1]), 10, 64)
	k.file, k.name = string(parts[0]) == "true", string(parts[2])
	return k, err == nil
}

// keys are the sorted keys of the entries that the user can read. All rules being within
// the project, most entries have the verdict of the directory.
func (v *view) keys(ctx context.Context, dir *beneath.Dir, path string, in ListQuery) (keys []key, err error) {
	for batch, err := range dir.Names() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, fileError(err)
		}
		for _, name := range batch {
			if v.user.Verdict(rules.Join(path, name)).Access == models.AccessNone {
				continue
			}
			info, err := dir.Stat(name)
			if err != nil {
				continue // removed since
			}
			k := key{file: info.Kind != beneath.Directory, name: name}
			switch in.Sort {
			case BySize:
				k.number = info.Size
			case ByModified:
				k.number = info.Modified.UnixNano()
			}
			keys = append(keys, k)
		}
		if len(keys) > maxEntries {
			return nil, models.Conflict("The directory has more than %d entries.", int64(maxEntries))
		}
	}
	slices.SortFunc(keys, in.compare)
	return keys, nil
}

func (v *view) page(l *Listing, dir *beneath.Dir, path string, keys []key, in ListQuery) error {
	if in.Cursor != "" {
		after, ok := keyOf(in.Cursor)
		if !ok {
			return models.Invalid("cursor", "is not a valid cursor for this list")
		}
		at, exact := slices.BinarySearchFunc(keys, after, in.compare)
		if exact {
			at++
		}
		keys = keys[at:]
	}
	limit := min(max(in.Limit, 1), maxListed)
	if len(keys) > limit {
		keys = keys[:limit]
		l.Next = keys[limit-1].cursor()
	}
	l.Entries = make([]Entry, 0, len(keys))
	for _, k := range keys {
		info, err := dir.Stat(k.name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fileError(err)
		}
		l.Entries = append(l.Entries, v.entry(rules.Join(path, k.name), info))
	}
	return nil
}
