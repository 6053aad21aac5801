package files

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/models/store"
	"weir/policies"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// Condition is on the present content of a file, as in HTTP; the zero value is none.
type Condition struct {
	IfMatch     string // ETags, or "*": it exists
	IfNoneMatch string // "*": it does not exist
}

// check compares the condition with a file; present is false if there is none.
func (c Condition) check(info beneath.Info, present bool) error {
	matches := func(list string) bool {
		for tag := range strings.SplitSeq(list, ",") {
			if tag = strings.TrimSpace(tag); present && (tag == "*" || tag == etag(info)) {
				return true
			}
		}
		return false
	}
	if c.IfMatch != "" && !matches(c.IfMatch) || c.IfNoneMatch != "" && matches(c.IfNoneMatch) {
		e := models.Conflict("This %s was changed by someone else. Reload it and try again.", models.Say("file"))
		e.Err = models.ErrStale
		return e
	}
	return nil
}

// Write replaces the content of a file, or creates it. Readers see the old content or
// the new one. size is -1 if it is unknown; otherwise the content must have it. What was
// overwritten is kept as a version.
func (s *Service) Write(ctx context.Context, actor policies.Actor, project int64, path models.FilePath, content io.Reader, size int64,
	c Condition) (Entry, error) {
	v, clean, err := s.viewAt(ctx, actor, project, path, (*view).requireChange)
	if err != nil {
		return Entry{}, err
	}
	return v.write(ctx, "write", clean, content, size, c)
}

func (v *view) write(ctx context.Context, kind, path string, content io.Reader, size int64, c Condition) (Entry, error) {
	dir, name, err := v.parent(path)
	if err != nil {
		return Entry{}, err
	}
	defer dir.Close()
	if err := replaceable(dir, name, c); err != nil {
		return Entry{}, err
	}
	o, err := v.begin(ctx, kind, path, "", max(size, 0))
	if err != nil {
		return Entry{}, err
	}
	tmp, err := o.temporary()
	if err != nil {
		return Entry{}, o.abort(ctx, err)
	}
	defer tmp.Close()
	if err := o.receive(ctx, tmp, content, size); err != nil {
		return Entry{}, o.abort(ctx, fileError(err))
	}
	return o.put(ctx, tmp, dir, name, c)
}

// replaceable refuses to overwrite anything but a regular file that meets the condition.
func replaceable(dir *beneath.Dir, name string, c Condition) error {
	info, err := dir.Stat(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fileError(err)
	}
	switch {
	case err == nil && info.Kind == beneath.Directory:
		return fileError(unix.EISDIR)
	case err == nil && info.Kind == beneath.Irregular:
		return fileError(beneath.ErrIrregular)
	}
	return c.check(info, err == nil)
}

// receive writes content to the operation's temporary file.
func (o *operation) receive(ctx context.Context, tmp *beneath.Dir, content io.Reader, size int64) error {
	return create(tmp, idName(o.row.ID), func(f *os.File) error {
		return errors.Join(o.fill(ctx, f, content, size), f.Sync())
	})
}

// create creates a file with its content.
func create(dir *beneath.Dir, name string, fill func(*os.File) error) error {
	f, err := dir.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(fill(f), f.Close())
}

func (o *operation) fill(ctx context.Context, f *os.File, content io.Reader, size int64) error {
	if source, ok := content.(*os.File); ok {
		return o.copyBytes(ctx, f, source, size)
	}
	if size >= 0 {
		content = io.LimitReader(content, size+1)
	}
	// The bytes are accounted for before they are written.
	n, err := io.CopyBuffer(&earlyWriter{file: f}, io.TeeReader(content, accounter{o, ctx}), make([]byte, 1<<20))
	if err == nil && size >= 0 && n != size {
		err = models.Invalid("body", "must have %d bytes; has %d", size, n)
	}
	return err
}

// copiedAtOnce is how many bytes of a file are copied between two checks.
const copiedAtOnce = 64 << 20

// copyBytes copies a file by the kernel.
func (o *operation) copyBytes(ctx context.Context, f, source *os.File, size int64) error {
	for left := size; left > 0; left -= copiedAtOnce {
		n := min(left, copiedAtOnce)
		if err := errors.Join(o.account(ctx, n), ctx.Err()); err != nil {
			return err
		}
		if _, err := io.CopyN(f, source, n); err != nil {
			return err
		}
	}
	return nil
}

// writtenBackAtOnce is after how many bytes of an upload the disk starts to write them.
const writtenBackAtOnce = 64 << 20

// earlyWriter lets the disk write each part of a file while the next one arrives, so that
// little is left to the final sync, which also reports what has failed. It has no ReadFrom,
// by which the buffer of a copy would not be used.
type earlyWriter struct {
	file           *os.File
	offset, passed int64 // the end of the file, and up to where the disk was told to write
}

func (w *earlyWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	if w.offset += int64(n); w.offset-w.passed >= writtenBackAtOnce {
		_ = unix.SyncFileRange(int(w.file.Fd()), w.passed, w.offset-w.passed, unix.SYNC_FILE_RANGE_WRITE) // not every file system can
		w.passed = w.offset
	}
	return n, err
}

// put moves the temporary file to its path and keeps what was there.
func (o *operation) put(ctx context.Context, tmp, dir *beneath.Dir, name string, c Condition) (Entry, error) {
	models.Failpoint("files.received")
	id := idName(o.row.ID)
	info, err := tmp.Stat(id)
	if err != nil {
		return Entry{}, o.abort(ctx, fileError(err))
	}
	path := string(o.row.Path)
	var old *beneath.Info
	err = o.commit(ctx, info.Inode, func(now *view) error {
		return errors.Join(now.checkChange(path), o.checkInPlace(dir, path))
	}, func() error {
		return tmp.Locked(func() (err error) { // of two with the same condition, one meets it
			if err = replaceable(dir, name, c); err == nil {
				old, err = o.swap(tmp, dir, name, c)
			}
			return err
		})
	})
	if err != nil {
		return Entry{}, o.fail(ctx, err)
	}
	if err := dir.Sync(); err != nil {
		return Entry{}, err
	}
	use := o.written()
	if old != nil {
		above, _ := rules.Split(path)
		shares := models.StorageShares{o.ownerOf(o.project, path, old.UID): old.Size}
		use = append(use, movedBytes(o.project, above, metaPath(o.project, o.row.Path, versionsDir), shares, shares)...)
	}
	err = o.finish(ctx, use, nil, audited(path, o.bytes), func(q *store.Queries) error {
		if old == nil {
			return nil
		}
		return q.CreateFileVersion(models.FileVersion{KeptFile: kept(o.row, o.row.Path, *old, q.Now())})
	})
	if err != nil {
		return Entry{}, err
	}
	if info, err = dir.Stat(name); err != nil { // somebody removed it since
		return Entry{}, fileError(err)
	}
	return o.entry(path, info), nil
}

// checkInPlace refuses if an open directory is no longer the one above a path: it was
// moved while content arrived, and where it is now other rules can hold.
func (s *Service) checkInPlace(dir *beneath.Dir, path string) error {
	now, _, err := s.parent(path)
	if err != nil {
		return err
	}
	defer now.Close()
	same, err := dir.Same(now)
	if err == nil && !same {
		err = models.Conflict("The directory was moved or replaced in the meantime.")
	}
	return err
}

// swap puts the temporary file at a name. If there was a file, that is moved to the
// versions.
func (o *operation) swap(tmp, dir *beneath.Dir, name string, c Condition) (*beneath.Info, error) {
	id := idName(o.row.ID)
	err := tmp.Rename(id, dir, name)
	if !errors.Is(err, fs.ErrExist) || c.IfNoneMatch != "" {
		return nil, err
	}
	versions, err := o.meta(o.project, o.row.Path, versionsDir)
	if err != nil {
		return nil, err
	}
	defer versions.Close()
	err = tmp.Exchange(id, dir, name)
	if errors.Is(err, unix.EINVAL) { // NFS
		return o.replace(tmp, dir, versions, name)
	}
	if err != nil {
		return nil, err
	}
	models.Failpoint("files.exchanged")
	info, err := tmp.Stat(id)
	if err == nil && info.Kind != beneath.Regular { // it was replaced meanwhile
		err = beneath.ErrIrregular
	}
	if err != nil {
		return nil, errors.Join(err, tmp.Exchange(id, dir, name))
	}
	if err := tmp.Rename(id, versions, id); err != nil { // otherwise the old content would be removed with the operation
		return nil, errors.Join(err, tmp.Exchange(id, dir, name))
	}
	return &info, nil
}

// replace is swap where names cannot be exchanged. Until the second step the old content
// has two names, and is not readable.
func (o *operation) replace(tmp, dir, versions *beneath.Dir, name string) (*beneath.Info, error) {
	id := idName(o.row.ID)
	info, err := dir.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Kind != beneath.Regular {
		return nil, beneath.ErrIrregular
	}
	if err := dir.Link(name, versions, id); err != nil {
		return nil, err
	}
	if err := tmp.Replace(id, dir, name); err != nil {
		return nil, errors.Join(err, versions.Remove(id))
	}
	return &info, nil
}
