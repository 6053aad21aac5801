package files

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// sweeper is the actor of the sweep.
var sweeper = policies.System("files")

// Run sweeps, measures and enforces quotas until ctx ends. Only the leader may run it.
func (s *Service) Run(ctx context.Context) {
	var work sync.WaitGroup
	work.Go(func() { s.repeat(ctx, s.Sweep) })
	for _, step := range []func(context.Context) error{s.measureDue, s.EnforceQuotas} {
		work.Go(func() {
			yieldDisk()
			s.repeat(ctx, step)
		})
	}
	work.Go(func() {
		yieldDisk()
		s.watchSpace(ctx)
	})
	work.Wait()
}

func (s *Service) repeat(ctx context.Context, step func(context.Context) error) {
	for ctx.Err() == nil {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "the sweep of shared files failed", "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(s.SweepEvery):
		}
	}
}

// Sweep completes or removes abandoned operations, removes what is kept for too long,
// and records who exceeds a storage limit.
func (s *Service) Sweep(ctx context.Context) error {
	q, now := s.Store.Read(ctx), s.Store.Now()
	operations, err := q.ExpiredFileOperations(now)
	errs := []error{err}
	for _, o := range operations {
		errs = append(errs, s.recover(ctx, o))
	}
	trash, err := q.TrashedFilesBefore(now.Add(-s.TrashAge))
	errs = append(errs, err)
	for _, item := range trash {
		errs = append(errs, s.purge(ctx, sweeper, purgeTrash, item.KeptFile))
	}
	versions, err := q.FileVersionsBefore(now.Add(-s.VersionAge))
	errs = append(errs, err)
	for _, v := range versions {
		errs = append(errs, s.purge(ctx, sweeper, purgeVersion, v.KeptFile))
	}
	return errors.Join(append(errs, s.recordExcesses(ctx))...)
}

// recover ends an abandoned operation.
func (s *Service) recover(ctx context.Context, o models.FileOperation) error {
	claimed := false
	err := s.Store.InTx(ctx, func(q *store.Queries) (err error) {
		claimed, err = q.ClaimFileOperation(o, q.Now().Add(operationLease))
		return err
	})
	if err != nil || !claimed { // it goes on
		return err
	}
	for _, p := range []purge{purgeTrash, purgeVersion} {
		if o.Kind == p.kind {
			return s.removePurged(ctx, p, o)
		}
	}
	at, info, err := s.destinationOf(o)
	if err != nil {
		return err
	}
	effect, err := s.tookEffect(o, info)
	if err != nil {
		return err
	}
	if !effect {
		return errors.Join(s.remove(o.ProjectID, o.Path, versionsDir, o.ID), s.discard(ctx, o))
	}
	if o.Kind == "delete" && info.Kind == beneath.Directory {
		shares, err := s.keptShares(ctx, kept(o, o.Path, info, s.Store.Now()), trashDir)
		if err != nil {
			return err
		}
		info.Size = shares.Sum()
	}
	var before, after any = nil, audited(at, info.Size)
	if o.Kind == "delete" {
		before, after = after, nil
	}
	version, err := s.recoverVersion(o)
	if err != nil {
		return err
	}
	use, err := s.recoverUse(ctx, o)
	if err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(q *store.Queries) error {
		return conclude(q, sweeper, o, use, before, after, func(q *store.Queries) error {
			switch {
			case o.Kind == "delete":
				return q.CreateTrashedFile(trashed(o, info, q))
			case o.ItemID != 0:
				return models.IgnoreNotFound(q.DeleteTrashedFile(o.ItemID))
			case version != nil:
				return q.CreateFileVersion(models.FileVersion{KeptFile: kept(o, o.Path, *version, q.Now())})
			}
			return nil
		})
	})
}

// recoverUse is the change by what an operation has written.
func (s *Service) recoverUse(ctx context.Context, o models.FileOperation) ([]models.StorageChange, error) {
	if o.Reserved == 0 {
		return nil, nil
	}
	dir, name, err := s.above(string(o.Path))
	var shares models.StorageShares
	if err == nil {
		defer dir.Close()
		shares, err = s.shares(ctx, o.ProjectID, dir, name, string(o.Path))
	}
	if err != nil { // it is not there any more, or cannot be read: the next measurement counts it
		if unreadable(err) {
			err = nil
		}
		return nil, fileError(err)
	}
	above, _ := rules.Split(string(o.Path))
	return changed(o.ProjectID, above, shares), nil
}

// tookEffect reports whether an operation has had its effect, with what is at its destination. Then
// what it was to move is there. Somebody may have replaced that since: what has been overwritten is kept.
func (s *Service) tookEffect(o models.FileOperation, at beneath.Info) (bool, error) {
	moved := uint64(o.Inode)
	switch {
	case moved == 0 || at.Inode == moved:
		return moved != 0, nil
	case o.Kind == "delete", o.Target != "":
		return false, nil
	case o.ItemID != 0: // is restored
		item, err := s.metaInfo(o, trashDir, o.ItemID)
		return item.Inode != moved, err
	}
	prepared, err := s.metaInfo(o, tmpDir, o.ID)
	if err != nil || prepared.Inode == moved {
		return false, err
	}
	overwritten, err := s.metaInfo(o, versionsDir, o.ID)
	return prepared.Inode != 0 || overwritten.Inode != 0, err
}

// metaInfo is what has an id in a directory of kept files; zero if nothing has.
func (s *Service) metaInfo(o models.FileOperation, kind string, id int64) (beneath.Info, error) {
	dir, err := s.meta(o.ProjectID, o.Path, kind)
	if err != nil {
		return beneath.Info{}, err
	}
	defer dir.Close()
	info, err := dir.Stat(idName(id))
	return info, models.IgnoreNotFound(fileError(err))
}

// destinationOf is where an operation moves something, and what is there; zero if nothing is.
func (s *Service) destinationOf(o models.FileOperation) (string, beneath.Info, error) {
	path := string(o.Path)
	if o.Target != "" {
		path = string(o.Target)
	}
	var dir *beneath.Dir
	var err error
	name := idName(o.ID)
	if o.Kind == "delete" {
		dir, err = s.meta(o.ProjectID, o.Path, trashDir)
	} else {
		dir, name, err = s.above(path)
	}
	info := beneath.Info{}
	if err == nil {
		defer dir.Close()
		info, err = dir.Stat(name)
	}
	if gone(err) { // or something else is there, or above
		err = nil
	}
	return path, info, fileError(err)
}

// recoverVersion moves what an operation has overwritten to the versions, unless it is
// there already.
func (s *Service) recoverVersion(o models.FileOperation) (*beneath.Info, error) {
	tmp, err := s.meta(o.ProjectID, o.Path, tmpDir)
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	versions, err := s.meta(o.ProjectID, o.Path, versionsDir)
	if err != nil {
		return nil, err
	}
	defer versions.Close()
	name := idName(o.ID)
	if err := tmp.Rename(name, versions, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	info, err := versions.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return &info, err
}
