package shard

import (
	"errors"
	"io"
	"io/fs"

	"weir/models"
)

// OpenFile is a file that can be read at any place.
type OpenFile struct {
	fs.File
	io.ReaderAt
	Size int64 // bytes
}

// Open opens a regular file of the model for reading at any place; close it.
func Open(folder fs.FS, name string) (f OpenFile, err error) {
	if f.File, err = folder.Open(name); err != nil {
		if models.KindOf(err) == models.KindNotFound || errors.Is(err, fs.ErrNotExist) {
			err = models.Conflict("The file %s was not found.", models.VisibleName(name))
		}
		return f, err
	}
	info, err := f.Stat()
	r, readable := f.File.(io.ReaderAt)
	if err == nil && (!readable || !info.Mode().IsRegular()) {
		err = refuse(name, models.Say("it is not a regular file"))
	}
	if err != nil {
		return f, errors.Join(err, f.Close())
	}
	f.ReaderAt, f.Size = r, info.Size()
	return f, nil
}

// ReadSmall reads a file that may not exist; it is nil then.
func ReadSmall(folder fs.FS, name string, most int64) ([]byte, error) {
	if _, err := fs.Stat(folder, name); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	f, err := Open(folder, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if f.Size > most {
		return nil, refuse(name, models.Say("it has more than %d bytes", most))
	}
	content := make([]byte, f.Size)
	return content, readFull(f, content, 0)
}

// readFull fills a buffer. A file can have become shorter.
func readFull(r io.ReaderAt, buffer []byte, at int64) error {
	n, err := r.ReadAt(buffer, at)
	if n == len(buffer) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return models.Conflict("The file is in use. Try again in a moment.")
	}
	return err
}

// refuse says what is wrong with a file.
func refuse(name string, why models.Text) error {
	return models.Conflict("The file %s is not valid: %s", models.VisibleName(name), why)
}
