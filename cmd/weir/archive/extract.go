package archive

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// directory is the sink of an extraction. Nothing is followed or replaced: each entry is new.
type directory struct {
	root   *os.Root
	owners bool // this user may give files away
	made   []tar.Header
}

// modes that are kept: no file gets the rights of its owner or group by being run.
const (
	fileModes = 0o777
	dirModes  = 0o3777 // new files get the group of the directory
)

func (d *directory) file(h *tar.Header) (io.WriteCloser, error) {
	if !isShared(h.Name) {
		if err := d.root.MkdirAll(path.Dir(h.Name), 0o700); err != nil {
			return nil, err
		}
	}
	f, err := d.root.OpenFile(h.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return newFile{f, d, h}, nil
}

// newFile gets its owner and its mode when it is written.
type newFile struct {
	*os.File
	dir    *directory
	header *tar.Header
}

func (f newFile) Close() error {
	var err error
	if isShared(f.header.Name) {
		if f.dir.owners {
			err = f.Chown(f.header.Uid, f.header.Gid)
		}
		err = errors.Join(err, unix.Fchmod(int(f.Fd()), uint32(f.header.Mode&fileModes)))
	}
	return errors.Join(err, f.Sync(), f.File.Close(), f.dir.root.Chtimes(f.header.Name, time.Time{}, f.header.ModTime))
}

func (d *directory) dir(h *tar.Header) error {
	d.made = append(d.made, *h)
	return d.root.Mkdir(h.Name, 0o700)
}

func (d *directory) link(h *tar.Header) error {
	if err := d.root.Symlink(h.Linkname, h.Name); err != nil {
		return err
	}
	if d.owners {
		return d.root.Lchown(h.Name, h.Uid, h.Gid)
	}
	return nil
}

// finish gives directories their owners, modes and times, the deepest first.
func (d *directory) finish() error {
	for _, h := range slices.Backward(d.made) {
		f, err := d.root.OpenFile(h.Name, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		if d.owners {
			err = f.Chown(h.Uid, h.Gid)
		}
		err = errors.Join(err, unix.Fchmod(int(f.Fd()), uint32(h.Mode&dirModes)), f.Sync(), f.Close(),
			d.root.Chtimes(h.Name, time.Time{}, h.ModTime))
		if err != nil {
			return err
		}
	}
	return nil
}
