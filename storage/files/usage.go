package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"weir/models"
	"weir/models/store"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// ownerOf is the member whose the bytes of a file are: in whose directory it is, or else
// whose uid owns it; 0: they are only the project's.
func (s *Service) ownerOf(project int64, path string, uid uint32) int64 {
	if member := rules.MemberOf(project, path); member != 0 || s.MemberOf == nil {
		return member
	}
	return s.MemberOf(uid)
}

// payer is the member whose the bytes are that v writes at a path.
func (v *view) payer(path string) int64 {
	if !counted(models.FilePath(path)) {
		return 0
	}
	uid := os.Geteuid()
	if v.owner != nil && v.owner.Set {
		uid = v.owner.UID
	}
	return v.ownerOf(v.project, path, uint32(uid))
}

// shares adds up the files at a name and below it, by whose they are. path is where they
// are, or were, in the layout.
func (s *Service) shares(ctx context.Context, project int64, dir *beneath.Dir, name, path string) (models.StorageShares, error) {
	sum := models.StorageShares{}
	count := func(_ string, info beneath.Info) error {
		sum[s.ownerOf(project, path, info.UID)] += info.Size
		return nil
	}
	info, err := dir.Stat(name)
	if err != nil || info.Kind != beneath.Directory {
		return sum, errors.Join(err, count("", info))
	}
	top, err := dir.Dir(name)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	for walk := beneath.NewWalk(top); ; {
		_, err := walk.Next(count)
		if errors.Is(err, io.EOF) {
			return sum, nil
		}
		if err = errors.Join(err, ctx.Err()); err != nil {
			return nil, err
		}
	}
}

// keptShares is shares of something in the trash or of a version; what is gone has its
// recorded size.
func (s *Service) keptShares(ctx context.Context, k models.KeptFile, kind string) (models.StorageShares, error) {
	dir, err := s.meta(k.ProjectID, k.Path, kind)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	shares, err := s.shares(ctx, k.ProjectID, dir, idName(k.ID), string(k.Path))
	if errors.Is(err, fs.ErrNotExist) {
		return models.StorageShares{rules.MemberOf(k.ProjectID, string(k.Path)): k.Bytes}, nil
	}
	return shares, err
}

// relocated is what a move from one path to another changes. Within the directories of
// one member, or of none, it is nothing; only for a file that is known as well.
func (s *Service) relocated(ctx context.Context, project int64, dir *beneath.Dir, name string, source, target models.FilePath) (before,
	after models.StorageShares, err error) {
	from, to := rules.MemberOf(project, string(source)), rules.MemberOf(project, string(target))
	if from == to && counted(source) == counted(target) {
		return nil, nil, nil
	}
	if before, err = s.shares(ctx, project, dir, name, string(source)); err != nil {
		return nil, nil, fileError(err)
	}
	after, err = s.shares(ctx, project, dir, name, string(target))
	return before, after, fileError(err)
}

// checkGained refuses what would exceed the limit of the member, or the quota of the
// project, to whose directory it gets.
func (v *view) checkGained(ctx context.Context, source, target models.FilePath, gained models.StorageShares) error {
	q := v.Store.Read(ctx)
	if gained == nil || !counted(target) {
		return nil
	}
	if !counted(source) {
		if err := checkQuota(q, v.project, gained.Sum()); err != nil {
			return err
		}
	}
	return checkLimit(q, v.project, rules.MemberOf(v.project, string(target)), gained.Sum())
}

const (
	mebibyte   = 1 << 20
	storageMiB = "storage_mib"
)

// reserve reserves bytes for an operation. Who is over a limit can write nothing, not
// even an empty file.
func reserve(q *store.Queries, o models.FileOperation, bytes int64) error {
	if bytes > maxReserved { // also for an unlimited quota: sums must not overflow
		return models.NoCapacity("", "A file can have at most 1 PiB. This needs %s.", inMiB(bytes))
	}
	if !counted(o.Path) {
		return nil
	}
	if _, err := q.LockProject(store.AllProjects, o.ProjectID); err != nil {
		return err
	}
	if err := checkQuota(q, o.ProjectID, bytes); err != nil {
		return err
	}
	if err := checkLimit(q, o.ProjectID, o.MemberID, bytes); err != nil {
		return err
	}
	return q.ReserveStorage(o.ProjectID, bytes)
}

// maxReserved is the most that one request can reserve, in bytes.
const maxReserved = 1 << 50

// Allowance is what a project or one of its members uses of its storage.
type Allowance struct {
	Used, Reserved int64 // bytes; reserved by operations in progress
	LimitMiB       int64
}

// fits reports whether there is room for more bytes. In what is over its limit not even
// none fit.
func (a Allowance) fits(bytes int64) bool {
	free := a.LimitMiB*mebibyte - a.Used - a.Reserved
	return models.IsUnlimited(a.LimitMiB) || bytes <= free && free >= 0
}

// projectAllowance is what a project uses of its quota.
func projectAllowance(q *store.Queries, p models.Project) (Allowance, error) {
	use, err := q.StorageUse(p.ID)
	return Allowance{use.Used, use.Reserved, p.Quota.StorageMiB}, err
}

// memberAllowance is what a member uses of the role's limit.
func memberAllowance(q *store.Queries, m models.MemberView) (Allowance, error) {
	use, reserved, err := q.MemberStorageUse(m.ID)
	return Allowance{use.Used, reserved, m.Limit.StorageMiB}, err
}

// checkQuota refuses bytes that do not fit in the quota of a project.
func checkQuota(q *store.Queries, project, bytes int64) error {
	p, err := q.Project(store.AllProjects, project)
	if err != nil {
		return err
	}
	a, err := projectAllowance(q, p)
	if err != nil || a.fits(bytes) {
		return err
	}
	return models.NoCapacity("", "The storage quota of the project is %s, of which %s is used. This needs %s more. Delete files and empty the trash, or request more quota.",
		inMiB(a.LimitMiB*mebibyte), inMiB(a.Used+a.Reserved), inMiB(bytes))
}

// checkLimit refuses bytes that do not fit in a member's limit. A former member has none.
func checkLimit(q *store.Queries, project, member, bytes int64) error {
	if member == 0 {
		return nil
	}
	m, err := q.MemberView(store.AllProjects, project, member)
	if err != nil {
		return models.IgnoreNotFound(err)
	}
	a, err := memberAllowance(q, m)
	if err != nil || a.fits(bytes) {
		return err
	}
	return models.NoCapacity("", "The storage limit of %s in this project is %s, of which %s is used. This needs %s more. Delete files and empty the trash, or request a higher limit.",
		m.UserName, inMiB(a.LimitMiB*mebibyte), inMiB(a.Used+a.Reserved), inMiB(bytes))
}

// inMiB is bytes for people, rounded up.
func inMiB(bytes int64) string {
	return models.Quantity(storageMiB, (bytes+mebibyte-1)/mebibyte)
}
