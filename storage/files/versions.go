package files

import (
	"context"
	"errors"
	"os"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/beneath"
)

// Version is an overwritten version of a file.
type Version struct {
	models.FileVersion
	By           string // name of who overwrote it, if that is known
	Downloadable bool
	Changeable   bool // the user can restore and remove it
}

// Versions lists the overwritten versions of a file, the newest first.
func (s *Service) Versions(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, page store.Page) (
	[]Version, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, err
	}
	clean, err := v.require(path, models.AccessRead)
	if err != nil {
		return nil, err
	}
	q := s.Store.Read(ctx)
	rows, err := q.FileVersions(project, models.FilePath(clean), page)
	if err != nil {
		return nil, err
	}
	var users []*int64
	for _, row := range rows {
		users = append(users, row.UserID)
	}
	names, err := q.UserNames(users)
	list := make([]Version, len(rows))
	download, change := v.checkDownload(clean) == nil, v.checkKept(models.FilePath(clean)) == nil
	for i, row := range rows {
		list[i] = Version{FileVersion: row, Downloadable: download, Changeable: change}
		if row.UserID != nil {
			list[i].By = names[*row.UserID]
		}
	}
	return list, err
}

// OpenVersion opens a version for a download; close it.
func (s *Service) OpenVersion(ctx context.Context, actor policies.Actor, project, id int64, sends bool) (*Content, error) {
	v, row, err := s.version(ctx, actor, project, id)
	if err != nil {
		return nil, err
	}
	path := string(row.Path)
	if err := errors.Join(v.check(path, models.AccessRead), v.checkDownload(path)); err != nil {
		return nil, err
	}
	f, info, err := s.openVersion(row)
	if err != nil {
		return nil, err
	}
	if sends && s.downloads.isNew(v, path, info) {
		if err := v.auditDownload(ctx, path, info.Size); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return &Content{f, v.entry(path, info), s.transfers.begin(v, path)}, nil
}

// Version finds a version of a file that the user may change, as to remove it.
func (s *Service) Version(ctx context.Context, actor policies.Actor, project, id int64) (models.FileVersion, error) {
	v, row, err := s.version(ctx, actor, project, id)
	if err == nil {
		err = v.checkKept(row.Path)
	}
	return row, err
}

func (s *Service) version(ctx context.Context, actor policies.Actor, project, id int64) (*view, models.FileVersion, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, models.FileVersion{}, err
	}
	row, err := s.Store.Read(ctx).FileVersion(project, id)
	if err == nil {
		err = v.check(string(row.Path), models.AccessRead)
	}
	return v, row, err
}

func (s *Service) openVersion(v models.FileVersion) (*os.File, beneath.Info, error) {
	dir, err := s.meta(v.ProjectID, v.Path, versionsDir)
	if err != nil {
		return nil, beneath.Info{}, err
	}
	defer dir.Close()
	f, info, err := dir.Open(idName(v.ID))
	return f, info, fileError(err)
}

// RestoreVersion makes a version the content of its file again. The present content
// becomes a version.
func (s *Service) RestoreVersion(ctx context.Context, actor policies.Actor, project, id int64) (Entry, error) {
	v, row, err := s.version(ctx, actor, project, id)
	if err != nil {
		return Entry{}, err
	}
	if err := v.checkKept(row.Path); err != nil {
		return Entry{}, err
	}
	path, err := v.restoreTo(row.KeptFile, "")
	if err != nil {
		return Entry{}, err
	}
	dir, _, err := s.parentToRestore(path)
	if err != nil {
		return Entry{}, err
	}
	dir.Close()
	f, info, err := s.openVersion(row)
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	return v.write(ctx, "restore", path, f, info.Size, Condition{})
}

// PurgeVersion removes a version for good, and returns what it was.
func (s *Service) PurgeVersion(ctx context.Context, actor policies.Actor, project, id int64) (models.FileVersion, error) {
	v, row, err := s.version(ctx, actor, project, id)
	if err == nil {
		err = v.checkKept(row.Path)
	}
	if err != nil {
		return row, err
	}
	return row, s.purge(ctx, v.actor, purgeVersion, row.KeptFile)
}
