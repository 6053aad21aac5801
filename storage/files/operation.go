package files

import (
	"context"
	"errors"
	"time"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

const (
	// operationLease is how long an operation may stand still before the sweep takes it
	// for abandoned.
	operationLease = 10 * time.Minute
	// uploadLease is how long an upload can be resumed.
	uploadLease = 24 * time.Hour
	renewAfter  = time.Minute

	// reservedAtOnce is how many bytes are reserved at a time when the size is unknown.
	reservedAtOnce = 64 << 20
)

const uploadKind = "upload"

// operation is a change of files whose intent is in the database.
type operation struct {
	*view
	row   models.FileOperation
	bytes int64 // written so far
}

// begin records the intent of a change, and reserves bytes for it.
func (v *view) begin(ctx context.Context, kind, path, target string, bytes int64) (*operation, error) {
	o := &operation{view: v, row: models.FileOperation{ProjectID: v.project, UserID: &v.actor.User.ID, Kind: kind, Path: models.FilePath(path),
		Target:   models.FilePath(target),
		MemberID: v.payer(path)}}
	return o, o.start(ctx, bytes)
}

// writes reports whether the operation needs space, not only other places for what is
// there.
func (o *operation) writes() bool {
	return o.row.Kind != "delete" && o.row.Kind != "move" && o.row.ItemID == 0
}

func (o *operation) start(ctx context.Context, bytes int64) error {
	if o.writes() {
		if err := o.Store.CheckSpace(); err != nil {
			return err
		}
	}
	err := o.Store.InTx(ctx, func(q *store.Queries) error {
		o.row.ID, o.row.Reserved, o.row.ExpiresAt = 0, bytes, q.Now().Add(o.lease())
		if o.writes() {
			if err := reserve(q, o.row, bytes); err != nil {
				return err
			}
		}
		return q.CreateFileOperation(&o.row)
	})
	models.Failpoint("files.begun")
	return err
}

// lease is how long the operation may stand still.
func (o *operation) lease() time.Duration {
	if o.row.Kind == uploadKind {
		return uploadLease
	}
	return operationLease
}

// renew continues the operation, with more bytes reserved.
func (o *operation) renew(ctx context.Context, more int64) error {
	err := o.Store.InTx(ctx, func(q *store.Queries) error {
		if more > 0 {
			if err := reserve(q, o.row, more); err != nil {
				return err
			}
		}
		row := o.row
		row.Reserved += more
		row.ExpiresAt = q.Now().Add(o.lease())
		if err := q.UpdateFileOperation(row); err != nil {
			return models.NotFoundAs(err, models.Conflict("The transfer stood still for too long and was cancelled."))
		}
		o.row.ExpiresAt = row.ExpiresAt
		return nil
	})
	if err == nil {
		o.row.Reserved += more
	}
	return err
}

// account counts bytes before they are written: it reserves them if they are more than
// was reserved, and keeps the operation alive.
func (o *operation) account(ctx context.Context, n int64) error {
	o.bytes += n
	if more := o.bytes - o.row.Reserved; more > 0 {
		if err := o.renew(ctx, max(more, reservedAtOnce)); models.KindOf(err) != models.KindNoCapacity {
			return err
		}
		return o.renew(ctx, more) // without spare
	}
	if o.row.ExpiresAt.Sub(o.Store.Now()) < o.lease()-renewAfter {
		return o.renew(ctx, 0)
	}
	return nil
}

// accounter counts the bytes that are written to it.
type accounter struct {
	*operation
	ctx context.Context
}

func (c accounter) Write(b []byte) (int, error) { return len(b), c.account(c.ctx, int64(len(b))) }

// commit lets the operation take effect if the user still has the right. inode is of what
// gets to its path.
func (o *operation) commit(ctx context.Context, inode uint64, allowed func(*view) error, effect func() error) error {
	return o.effects.run(o.revocationKeys(), func() error {
		now, err := o.refresh(ctx)
		if err != nil {
			return err
		}
		if err := allowed(now); err != nil {
			return err
		}
		if o.source != "" {
			if err := now.checkStillDownload(o.view, o.source); err != nil {
				return err
			}
		}
		o.row.Inode = int64(inode)
		return o.renew(ctx, 0)
	}, func() error {
		models.Failpoint("files.ready")
		err := fileError(effect())
		models.Failpoint("files.placed")
		return err
	})
}

// written is the change by what the operation has written at its path.
func (o *operation) written() []models.StorageChange {
	dir, _ := rules.Split(string(o.row.Path))
	return changed(o.project, dir, models.StorageShares{o.row.MemberID: o.bytes})
}

// finish records that the operation has taken effect, how it changes the use, and what
// the audit says about it.
func (o *operation) finish(ctx context.Context, use []models.StorageChange, before, after any, also func(*store.Queries) error) error {
	return o.Store.InRevokingTx(context.WithoutCancel(ctx), func(q *store.Queries) error { // it takes the key of an idempotent request
		if _, err := q.LockProject(store.AllProjects, o.project); err != nil {
			return err
		}
		return conclude(q, o.actor, o.row, use, before, after, also)
	})
}

// conclude ends an operation in the transaction that records its effect.
func conclude(q *store.Queries, actor policies.Actor, o models.FileOperation, use []models.StorageChange, before, after any,
	also func(*store.Queries) error) error {
	if err := q.DeleteFileOperation(o.ID); err != nil {
		return err
	}
	if err := errors.Join(release(q, o), q.AddStorageUse(o.ProjectID, use...)); err != nil {
		return err
	}
	if also != nil {
		if err := also(q); err != nil {
			return err
		}
	}
	return actor.Audit(q, policies.Change{Action: actionOf(o), Object: "file", ID: o.ID, Project: o.ProjectID, Before: before, After: after})
}

// actionOf is the audited action of an operation.
func actionOf(o models.FileOperation) string {
	if o.Kind == uploadKind {
		return "write"
	}
	return o.Kind
}

// abort ends an operation that has had no effect, and removes what it has prepared.
func (o *operation) abort(ctx context.Context, err error) error {
	return errors.Join(err, o.Service.discard(context.WithoutCancel(ctx), o.row))
}

// fail ends an operation that could not take effect, but keeps an upload unless it was
// refused: it can be finished later.
func (o *operation) fail(ctx context.Context, err error) error {
	switch models.KindOf(err) {
	case models.KindForbidden, models.KindNotFound, models.KindConflict, models.KindInvalid:
		return o.abort(ctx, err)
	}
	if o.row.Kind == uploadKind {
		return err
	}
	return o.abort(ctx, err)
}

func (s *Service) discard(ctx context.Context, o models.FileOperation) error {
	tmp, err := s.meta(o.ProjectID, o.Path, tmpDir)
	if err != nil {
		return err
	}
	defer tmp.Close()
	if err := tmp.RemoveAll(idName(o.ID)); err != nil {
		return err
	}
	return s.Store.InTx(ctx, func(q *store.Queries) error {
		if err := q.DeleteFileOperation(o.ID); err != nil {
			return models.IgnoreNotFound(err)
		}
		return release(q, o)
	})
}

// temporary opens the directory in which things are created for the user.
func (o *operation) temporary() (*beneath.Dir, error) {
	d, err := o.meta(o.project, o.row.Path, tmpDir)
	if err != nil {
		return nil, err
	}
	return o.as(d), nil
}

// release frees what an operation has reserved.
func release(q *store.Queries, o models.FileOperation) error {
	if !counted(o.Path) || o.Reserved == 0 {
		return nil
	}
	return q.ReserveStorage(o.ProjectID, -o.Reserved)
}

// audited is what the audit contains about a path.
func audited(path string, bytes int64) map[string]any {
	return map[string]any{"path": models.FilePath(path), "bytes": bytes}
}

// kept is the record of something that is kept under the operation's id.
func kept(o models.FileOperation, path models.FilePath, info beneath.Info, at time.Time) models.KeptFile {
	return models.KeptFile{ID: o.ID, ProjectID: o.ProjectID, UserID: o.UserID, Path: path, Bytes: info.Size, At: at}
}
