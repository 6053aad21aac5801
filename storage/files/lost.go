package files

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strconv"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// LostPath is the path of what is kept without a record. Nothing is there.
func LostPath(project int64) models.FilePath {
	return models.FilePath(rules.Join(rules.ProjectDir(project), "lost+found"))
}

// placeOf is where something that is kept is restored: where it was, or if that is not known, in the own directory.
func (v *view) placeOf(k models.KeptFile) models.FilePath {
	if k.Path != LostPath(v.project) {
		return k.Path
	}
	return models.FilePath(rules.Join(rules.MemberDir(v.project, v.user.MemberID), "lost+found-"+idName(k.ID)))
}

// recordLost records what is kept without a record: a restored database has none of what was deleted or overwritten
// after the backup. It is kept as if that happened now.
func (s *Service) recordLost(ctx context.Context, project int64) error {
	err1 := s.eachLost(ctx, project, trashDir, func(q *store.Queries, k models.KeptFile, kind beneath.Kind) error {
		return q.CreateTrashedFile(models.TrashedFile{KeptFile: k, Directory: kind == beneath.Directory})
	})
	err2 := s.eachLost(ctx, project, versionsDir, func(q *store.Queries, k models.KeptFile, _ beneath.Kind) error {
		return q.CreateFileVersion(models.FileVersion{KeptFile: k})
	})
	return errors.Join(err1, err2)
}

// eachLost calls fn with what a directory keeps without a record. What gets there, or is taken away, has an operation
// until it has a record, or none any more. So what has neither, and is still there afterwards, is nobody's.
func (s *Service) eachLost(ctx context.Context, project int64, kind string,
	fn func(*store.Queries, models.KeptFile, beneath.Kind) error) error {
	dir, err := s.Root.Dir(metaPath(project, LostPath(project), kind)[1:])
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	for names, err := range dir.Names() {
		if err != nil {
			return err
		}
		ids := idsOf(names)
		known, err := s.Store.Read(ctx).KnownFileIDs(ids)
		if err != nil {
			return err
		}
		for _, id := range ids {
			if slices.Contains(known, id) {
				continue
			}
			if err := s.recordOne(ctx, project, dir, id, fn); err != nil && !unreadable(err) {
				return err
			}
		}
	}
	return nil
}

// idsOf are the ids that names are; others are none of ours.
func idsOf(names []string) (ids []int64) {
	for _, name := range names {
		if id, err := strconv.ParseInt(name, 10, 64); err == nil && idName(id) == name {
			ids = append(ids, id)
		}
	}
	return ids
}

func (s *Service) recordOne(ctx context.Context, project int64, dir *beneath.Dir, id int64,
	fn func(*store.Queries, models.KeptFile, beneath.Kind) error) error {
	info, err := dir.Stat(idName(id))
	if err != nil {
		return err
	}
	shares, err := s.shares(ctx, project, dir, idName(id), string(LostPath(project)))
	if err != nil {
		return err
	}
	s.Logger.WarnContext(ctx, "found something in the trash or among the versions that has no record; it is kept as if it were new",
		"project", project, "id", id, "bytes", shares.Sum())
	k := models.KeptFile{ID: id, ProjectID: project, Path: LostPath(project), Bytes: shares.Sum(), At: s.Store.Now()}
	return s.Store.InTx(ctx, func(q *store.Queries) error { return fn(q, k, info.Kind) })
}
