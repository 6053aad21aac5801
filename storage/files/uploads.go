package files

import (
	"context"
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/policies"
	"weir/storage/beneath"
)

// Upload is a file that arrives in parts, each of which can be resumed. It replaces what
// is at its path when it is complete.
type Upload struct {
	*operation
	Length int64 // bytes
	Offset int64 // of the next part
}

// ID is the number of the upload.
func (u *Upload) ID() int64 { return u.row.ID }

// Path is where the file gets to.
func (u *Upload) Path() models.FilePath { return u.row.Path }

// BeginUpload begins the upload of a file of so many bytes.
func (s *Service) BeginUpload(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, length int64) (
	*Upload, error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireChange)
	if err != nil {
		return nil, err
	}
	dir, name, err := s.parent(clean)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if err := replaceable(dir, name, Condition{}); err != nil {
		return nil, err
	}
	o, err := v.begin(ctx, uploadKind, clean, "", length)
	if err != nil {
		return nil, err
	}
	tmp, err := o.temporary()
	if err != nil {
		return nil, o.abort(ctx, err)
	}
	defer tmp.Close()
	f, err := tmp.Create(idName(o.row.ID))
	if err == nil {
		err = errors.Join(f.Close(), tmp.Sync())
	}
	if err != nil {
		return nil, o.abort(ctx, fileError(err))
	}
	return &Upload{operation: o, Length: length}, nil
}

// Upload finds an upload of the actor that is not complete. The right to write at its
// path is checked again.
func (s *Service) Upload(ctx context.Context, actor policies.Actor, project, id int64) (*Upload, error) {
	v, err := s.viewOf(ctx, actor, project)
	if err != nil {
		return nil, err
	}
	row, err := s.Store.Read(ctx).FileOperation(project, id)
	if err != nil {
		return nil, err
	}
	if row.Kind != uploadKind || row.UserID == nil || *row.UserID != actor.User.ID {
		return nil, models.NotFound("upload")
	}
	if err := v.checkChange(string(row.Path)); err != nil {
		return nil, err
	}
	tmp, err := s.meta(project, row.Path, tmpDir)
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	info, err := tmp.Stat(idName(id))
	return &Upload{&operation{view: v, row: row}, row.Reserved, info.Size}, fileError(err)
}

// CheckUploads returns an error for who sees nothing of the project, and for access
// tokens that may not upload.
func (s *Service) CheckUploads(ctx context.Context, actor policies.Actor, project int64) error {
	if _, err := s.viewOf(ctx, actor, project); err != nil {
		return err
	}
	return checkScope(actor)
}

// lock opens the temporary file, which one request at a time may use: also of other
// servers, on the same file system. Close unlocks it.
func (u *Upload) lock() (*os.File, error) {
	tmp, err := u.meta(u.project, u.row.Path, tmpDir)
	if err != nil {
		return nil, err
	}
	defer tmp.Close()
	f, err := tmp.Append(idName(u.row.ID))
	if err != nil {
		return nil, fileError(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fileError(err), f.Close())
	}
	if _, err := tmp.Stat(idName(u.row.ID)); err != nil { // it was finished before the lock
		return nil, errors.Join(fileError(err), f.Close())
	}
	return f, nil
}

// Append writes a part at an offset. What has arrived when it fails is kept.
func (u *Upload) Append(ctx context.Context, offset int64, part io.Reader) (n int64, err error) {
	f, err := u.lock()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, fileError(f.Sync()), f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	if u.Offset = info.Size(); u.Offset != offset {
		return 0, models.Conflict("The upload continues at byte %d.", u.Offset)
	}
	if err := u.renew(ctx, 0); err != nil {
		return 0, err
	}
	u.bytes = offset
	arriving := io.TeeReader(io.LimitReader(part, u.Length-offset), accounter{u.operation, ctx}) // all is reserved already
	n, err = io.CopyBuffer(&earlyWriter{f, offset, offset}, arriving, make([]byte, 1<<20))
	u.Offset += n
	return n, fileError(err)
}

// Finish puts the file at its path.
func (u *Upload) Finish(ctx context.Context) (Entry, error) {
	if u.Offset != u.Length {
		return Entry{}, models.Conflict("The upload continues at byte %d.", u.Offset)
	}
	tmp, err := u.meta(u.project, u.row.Path, tmpDir)
	if err != nil {
		return Entry{}, err
	}
	defer tmp.Close()
	dir, name, err := u.parent(string(u.row.Path))
	if err != nil {
		return Entry{}, err
	}
	defer dir.Close()
	f, err := u.lock()
	if err != nil {
		return Entry{}, err
	}
	defer f.Close()
	if info, err := tmp.Stat(idName(u.row.ID)); err != nil || info.Kind != beneath.Regular || info.Size != u.Length {
		return Entry{}, errors.Join(models.Conflict("The upload continues at byte %d.", info.Size), err)
	}
	u.bytes = u.Length
	return u.put(ctx, tmp, dir, name, Condition{})
}

// Cancel ends the upload.
func (u *Upload) Cancel(ctx context.Context) error {
	f, err := u.lock()
	if err != nil {
		return err
	}
	return errors.Join(u.abort(ctx, nil), f.Close())
}
