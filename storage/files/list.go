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
	"time"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// Entry is a file or directory, with what the user may do with it.
type Entry struct {
	Name     string          `json:"name" doc:"name for people: what cannot be shown is replaced"`
	Path     models.FilePath `json:"path" doc:"percent-encoded path"`
	Kind     beneath.Kind    `json:"kind" enum:"directory,file,other" doc:"other: a link or a special file, which can only be used in a notebook"`
	Size     int64           `json:"size" doc:"bytes; 0 for directories"`
	Modified time.Time       `json:"modified"`
	ETag     string          `json:"etag,omitempty" doc:"of the content of a file"`
	Owner    string          `json:"owner,omitempty" doc:"name of the member in whose own directory this is"`
	rules.Verdict
	Changeable bool `json:"changeable" doc:"it can be moved, renamed and deleted"`
}

// etag is a strong ETag: each replacement has another inode or time of change.
func etag(i beneath.Info) string {
	return fmt.Sprintf(`"%x-%x-%x"`, i.Inode, i.Size, i.Changed.UnixNano())
}

func (v *view) entry(path string, i beneath.Info) Entry {
	_, name := rules.Split(path)
	e := Entry{Name: models.VisibleName(name), Path: models.FilePath(path), Kind: i.Kind, Size: i.Size, Modified: i.Modified.UTC(),
		Verdict: v.user.Verdict(path)}
	if i.Kind == beneath.Regular {
		e.ETag = etag(i)
	}
	e.Changeable = e.Access == models.AccessWrite && v.checkChange(path) == nil && v.checkNoRules(path) == nil
	return e
}

// ownedPath is a path, and where the name goes of the member in whose own directory it is.
type ownedPath struct {
	path  models.FilePath
	owner *string
}

// nameOwners adds the names of the members in whose own directories paths are.
func (v *view) nameOwners(ctx context.Context, list ...ownedPath) error {
	var members []int64
	for _, o := range list {
		if member := rules.MemberOf(v.project, string(o.path)); member != 0 && !slices.Contains(members, member) {
			members = append(members, member)
		}
	}
	if len(members) == 0 {
		return nil
	}
	names, err := v.Store.Read(ctx).MemberNames(v.project, members)
	for _, o := range list {
		*o.owner = names[rules.MemberOf(v.project, string(o.path))]
	}
	return err
}

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

// Stat describes a file or directory.
func (s *Service) Stat(ctx context.Context, actor policies.Actor, project int64, path models.FilePath) (Entry, error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).resolve)
	if err != nil {
		return Entry{}, err
	}
	e, err := v.stat(clean)
	if err != nil {
		return e, err
	}
	return e, v.nameOwners(ctx, ownedPath{e.Path, &e.Owner})
}

func (v *view) stat(path string) (Entry, error) {
	if err := v.check(path, models.AccessRead); err != nil {
		return Entry{}, err
	}
	dir, name, err := v.parent(path)
	if err != nil {
		return Entry{}, err
	}
	defer dir.Close()
	info, err := dir.Stat(name)
	return v.entry(path, info), fileError(err)
}

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

// walk calls fn for the entries below a directory that the user can read, a directory
// before what is in it, which fs.SkipDir leaves out, until fs.SkipAll. dir is the
// directory of the entry. An entry that cannot be read ends it, unless passed reports that it is left out.
func (v *view) walk(ctx context.Context, path string, passed func(path string, err error) bool,
	fn func(path string, info beneath.Info, dir *beneath.Dir) error) error {
	dir, err := v.Root.Dir(strings.TrimPrefix(path, "/"))
	if err != nil {
		return fileError(err)
	}
	defer dir.Close()
	err = v.walkDir(ctx, dir, path, passed, fn)
	if errors.Is(err, fs.SkipAll) {
		return nil
	}
	return fileError(err)
}

// passGone leaves out what is gone.
func passGone(_ string, err error) bool { return gone(err) }

// passUnreadable leaves out what cannot be read, too.
func passUnreadable(_ string, err error) bool { return unreadable(err) }

// gone reports whether an entry has been removed or replaced since its name was read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, beneath.ErrIrregular)
}

// unreadable reports whether an entry is gone, or its permissions or its depth do not let the portal read it.
func unreadable(err error) bool {
	return gone(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENAMETOOLONG)
}

func (v *view) walkDir(ctx context.Context, dir *beneath.Dir, path string, passed func(path string, err error) bool,
	fn func(string, beneath.Info, *beneath.Dir) error) error {
	for batch, err := range dir.Names() {
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		slices.Sort(batch)
		for _, name := range batch {
			child := rules.Join(path, name)
			if v.user.Verdict(child).Access == models.AccessNone {
				continue
			}
			info, err := dir.Stat(name)
			if len(child) > rules.MaxPath {
				err = unix.ENAMETOOLONG // it has no address
			}
			if err != nil && passed(child, err) {
				continue
			}
			if err != nil {
				return err
			}
			if err := fn(child, info, dir); errors.Is(err, fs.SkipDir) {
				continue
			} else if err != nil {
				return err
			}
			if info.Kind != beneath.Directory {
				continue
			}
			sub, err := dir.Dir(name)
			if err != nil && passed(child, err) {
				continue
			}
			if err != nil {
				return err
			}
			err = v.walkDir(ctx, sub, child, passed, fn)
			sub.Close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}
