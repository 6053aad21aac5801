package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// EnforceQuotas has the file system keep the projects within their quotas, also in
// notebooks, if it can. It lets the files of projects that it did not keep so far count
// for them, which takes a while; if it ends meanwhile, it begins with the project again.
func (s *Service) EnforceQuotas(ctx context.Context) error {
	top, err := s.Root.Dir("")
	if err != nil {
		return err
	}
	defer top.Close()
	if s.QuotaID == nil || !top.EnforcesQuotas() {
		return nil
	}
	var errs []error
	for page := (store.Page{Limit: store.PageSize}); ; {
		projects, err := s.Store.Read(ctx).StorageQuotas(page)
		if err = errors.Join(err, ctx.Err()); err != nil || len(projects) == 0 {
			return errors.Join(append(errs, err)...)
		}
		for _, p := range projects {
			err := s.enforceQuota(ctx, top, p)
			if errors.Is(err, unix.EPERM) {
				s.Logger.DebugContext(ctx, "the quotas of the file system need root", "err", err)
				return nil
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("the quota of project %d on the file system: %w", p.ID, err))
			}
		}
		page.After = projects[len(projects)-1].ID
	}
}

func (s *Service) enforceQuota(ctx context.Context, top *beneath.Dir, p models.Project) error {
	id := s.QuotaID(p.ID)
	if id == 0 {
		return nil
	}
	if err := top.SetQuota(id, limitOnDisk(p.Quota.StorageMiB)); err != nil || s.QuotaEnforced(p.ID) {
		return err
	}
	dir, err := s.Root.Dir(rules.ProjectDir(p.ID)[1:])
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer dir.Close()
	pace := pacer{rate: s.ScanRate}
	pause := func() error { return pace.pause(ctx, 1) }
	if err := dir.Assign(id, pause); err != nil {
		return err
	}
	for _, kind := range []string{tmpDir, trashDir, versionsDir} {
		kept, err := s.meta(p.ID, models.FilePath(rules.ProjectDir(p.ID)), kind)
		if err != nil {
			return err
		}
		if err := errors.Join(kept.Assign(id, pause), kept.Close()); err != nil {
			return err
		}
	}
	// What is above them comes last: it says that all the rest is done.
	kept, err := s.Root.Dir(metaTop(p.ID)[1:])
	if err != nil {
		return err
	}
	s.Logger.InfoContext(ctx, "the file system enforces the storage quota", "project", p.ID)
	return errors.Join(kept.AssignTop(id), kept.Close())
}

// limitOnDisk is a quota in bytes for the file system, to which 0 is no limit.
func limitOnDisk(quotaMiB int64) int64 {
	switch {
	case models.IsUnlimited(quotaMiB):
		return 0
	case quotaMiB == 0:
		return 1
	default:
		return quotaMiB * mebibyte
	}
}

// QuotaEnforced reports whether the file system keeps a project within its quota.
func (s *Service) QuotaEnforced(project int64) bool {
	if s.QuotaID == nil || s.QuotaID(project) == 0 {
		return false
	}
	dir, err := s.Root.Dir(metaTop(project)[1:])
	if err != nil {
		return false
	}
	defer dir.Close()
	return dir.QuotaProject() == s.QuotaID(project) && dir.EnforcesQuotas()
}
