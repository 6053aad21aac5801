package files

import (
	"context"
	"fmt"
	"slices"
	"time"

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
