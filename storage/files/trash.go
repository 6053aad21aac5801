package files

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"slices"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// Delete moves a file or directory to the trash.
func (s *Service) Delete(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, c Condition) (
	models.TrashedFile, error) {
	var item models.TrashedFile
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return item, err
	}
	clean, err := v.requireChange(path)
	if err != nil {
		return item, err
	}
	dir, name, err := s.parent(clean)
	if err != nil {
		return item, err
	}
	defer dir.Close()
	info, err := dir.Stat(name)
	if err == nil {
		err = errors.Join(v.checkNoRules(clean), c.check(info, true))
	}
	if err != nil {
		return item, fileError(err)
	}
	shares, err := s.shares(ctx, project, dir, name, clean) // before the operation: it can take long
	if err != nil {
		return item, fileError(err)
	}
	o, err := v.begin(ctx, "delete", clean, "", 0)
	if err != nil {
		return item, err
	}
	trash, err := s.meta(project, o.row.Path, trashDir)
	if err != nil {
		return item, o.abort(ctx, err)
	}
	defer trash.Close()
	err = o.commit(ctx, info.Inode, func(now *view) error {
		return errors.Join(now.checkChange(clean), now.checkNoRules(clean), o.checkInPlace(dir, clean))
	}, func() error {
		if now, err := dir.Stat(name); err != nil || now.Inode != info.Inode {
			return cmp.Or(err, error(models.Conflict("It was replaced in the meantime.")))
		}
		return dir.Rename(name, trash, idName(o.row.ID))
	})
	if err != nil {
		return item, o.abort(ctx, err)
	}
	if err := errors.Join(dir.Sync(), trash.Sync()); err != nil {
		return item, err
	}
	info.Size = shares.Sum()
	above, _ := rules.Split(clean)
	use := movedBytes(project, above, metaPath(project, o.row.Path, trashDir), shares, shares)
	return item, o.finish(ctx, use, audited(clean, info.Size), nil, func(q *store.Queries) error {
		item = trashed(o.row, info, q)
		return q.CreateTrashedFile(item)
	})
}

func trashed(o models.FileOperation, info beneath.Info, q *store.Queries) models.TrashedFile {
	return models.TrashedFile{KeptFile: kept(o, o.Path, info, q.Now()), Directory: info.Kind == beneath.Directory}
}

// Trashed is something in the trash.
type Trashed struct {
	models.TrashedFile
	By         string // name of who deleted it, if that is known
	Changeable bool   // the user can restore and remove it
	Versions   bool   // there are versions of it
}

// Trash lists what was deleted, the newest first, at paths that the user can read.
func (s *Service) Trash(ctx context.Context, actor policies.Actor, project int64, page store.Page) ([]Trashed, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, err
	}
	var list []Trashed
	var users []*int64
	var paths []models.FilePath
	for limit := min(max(page.Limit, 1), store.PageSize); len(list) < limit; {
		rows, err := s.Store.Read(ctx).TrashedFiles(project, store.Page{After: page.After, Limit: store.PageSize})
		if err != nil {
			return nil, err
		}
		for _, f := range rows {
			if page.After = f.ID; len(list) < limit && v.check(string(f.Path), models.AccessRead) == nil {
				list = append(list, Trashed{TrashedFile: f, Changeable: v.checkKept(f.Path) == nil})
				users, paths = append(users, f.UserID), append(paths, f.Path)
			}
		}
		if len(rows) < store.PageSize {
			break
		}
	}
	names, err1 := s.Store.Read(ctx).UserNames(users)
	versioned, err2 := s.Store.Read(ctx).VersionedPaths(project, paths)
	for i, user := range users {
		if list[i].Versions = slices.Contains(versioned, list[i].Path); user != nil {
			list[i].By = names[*user]
		}
	}
	return list, errors.Join(err1, err2)
}

// item finds something in the trash that the user may change.
func (s *Service) item(ctx context.Context, actor policies.Actor, project, id int64) (*view, models.TrashedFile, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, models.TrashedFile{}, err
	}
	item, err := s.Store.Read(ctx).TrashedFile(project, id)
	if err == nil {
		err = v.checkKept(item.Path)
	}
	return v, item, err
}

// Restore moves something from the trash to where it was, or to another path.
func (s *Service) Restore(ctx context.Context, actor policies.Actor, project, id int64, to models.FilePath) (Entry, error) {
	v, item, err := s.item(ctx, actor, project, id)
	if err != nil {
		return Entry{}, err
	}
	path, err := v.restoreTo(item.KeptFile, to)
	if err != nil {
		return Entry{}, err
	}
	dir, name, err := s.parentToRestore(path)
	if err != nil {
		return Entry{}, err
	}
	defer dir.Close()
	trash, err := s.meta(project, item.Path, trashDir)
	if err != nil {
		return Entry{}, err
	}
	defer trash.Close()
	info, err := trash.Stat(idName(id))
	if err != nil {
		return Entry{}, fileError(err)
	}
	before, after, err := s.relocated(ctx, project, trash, idName(id), item.Path, models.FilePath(path))
	if err == nil {
		err = v.checkGained(ctx, item.Path, models.FilePath(path), after)
	}
	if err != nil {
		return Entry{}, err
	}
	o := &operation{view: v, row: models.FileOperation{ProjectID: project, UserID: &actor.User.ID, Kind: "restore",
		Path: models.FilePath(path), ItemID: id}}
	if err := o.start(ctx, 0); err != nil {
		return Entry{}, err
	}
	err = o.commit(ctx, info.Inode, func(now *view) error { return errors.Join(now.checkKept(item.Path), now.checkChange(path)) },
		func() error { return trash.Rename(idName(id), dir, name) })
	if err != nil {
		return Entry{}, o.abort(ctx, err)
	}
	if err := errors.Join(dir.Sync(), trash.Sync()); err != nil {
		return Entry{}, err
	}
	above, _ := rules.Split(path)
	use := movedBytes(project, metaPath(project, item.Path, trashDir), above, before, after)
	err = o.finish(ctx, use, nil, audited(path, item.Bytes), func(q *store.Queries) error {
		return models.IgnoreNotFound(q.DeleteTrashedFile(id))
	})
	if err != nil {
		return Entry{}, err
	}
	return v.stat(path)
}

// restoreTo is the path to which something that is kept is restored, if the user may: to elsewhere, it is like a copy.
func (v *view) restoreTo(k models.KeptFile, to models.FilePath) (string, error) {
	path, err := v.requireChange(cmp.Or(to, v.placeOf(k)))
	if err != nil || path == string(k.Path) {
		return path, err
	}
	v.source = string(k.Path)
	return path, v.checkDownload(v.source)
}

// parentToRestore is parent for something that is restored.
func (s *Service) parentToRestore(path string) (*beneath.Dir, string, error) {
	dir, name, err := s.parent(path)
	above, _ := rules.Split(path)
	return dir, name, models.NotFoundAs(err, models.Conflict("The directory %s does not exist any more. Restore or create it first.",
		models.VisibleName(above)))
}

// purge is an operation that removes something for good.
type purge struct {
	kind   string
	dir    string // has it
	forget func(*store.Queries, int64) error
}

var (
	purgeTrash   = purge{"purge", trashDir, (*store.Queries).DeleteTrashedFile}
	purgeVersion = purge{"purge-version", versionsDir, (*store.Queries).DeleteFileVersion}
)

// Purge removes something from the trash for good.
func (s *Service) Purge(ctx context.Context, actor policies.Actor, project, id int64) error {
	v, item, err := s.item(ctx, actor, project, id)
	if err != nil {
		return err
	}
	return s.purge(ctx, v.actor, purgeTrash, item.KeptFile)
}

// purge first forgets the item, so that nobody restores what is half removed. The sweep
// completes a removal that was interrupted.
func (s *Service) purge(ctx context.Context, actor policies.Actor, p purge, item models.KeptFile) error {
	shares, err := s.keptShares(ctx, item, p.dir)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	o := models.FileOperation{ProjectID: item.ProjectID, UserID: item.UserID, Kind: p.kind, Path: item.Path, ItemID: item.ID}
	err = s.Store.InTx(ctx, func(q *store.Queries) error {
		if err := p.forget(q, item.ID); err != nil {
			return err
		}
		use := changed(item.ProjectID, metaPath(item.ProjectID, item.Path, p.dir), shares.Times(-1))
		if err := q.AddStorageUse(item.ProjectID, use...); err != nil {
			return err
		}
		o.ExpiresAt = q.Now().Add(operationLease)
		return errors.Join(q.CreateFileOperation(&o), actor.Audit(q, policies.Change{Action: actionOf(o), Object: "file", ID: item.ID,
			Project: item.ProjectID, Before: audited(string(item.Path), item.Bytes)}))
	})
	if err != nil {
		return err
	}
	models.Failpoint("files.purged")
	return s.removePurged(ctx, p, o)
}

// removePurged removes what a purge has forgotten, unless it was restored at the same
// moment.
func (s *Service) removePurged(ctx context.Context, p purge, o models.FileOperation) error {
	dir, err := s.meta(o.ProjectID, o.Path, p.dir)
	if err != nil {
		return err
	}
	defer dir.Close()
	tmp, err := s.meta(o.ProjectID, o.Path, tmpDir)
	if err != nil {
		return err
	}
	defer tmp.Close()
	if err := dir.Rename(idName(o.ItemID), tmp, idName(o.ID)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(err)
	}
	models.Failpoint("files.renamed")
	return s.discard(ctx, o)
}

// remove removes what is kept under an id.
func (s *Service) remove(project int64, path models.FilePath, kind string, id int64) error {
	dir, err := s.meta(project, path, kind)
	if err != nil {
		return err
	}
	defer dir.Close()
	return fileError(dir.RemoveAll(idName(id)))
}
