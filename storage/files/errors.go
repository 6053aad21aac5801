package files

import (
	"errors"
	"io/fs"

	"golang.org/x/sys/unix"

	"weir/models"
	"weir/storage/beneath"
	"weir/storage/rules"
)

// fileError is an error of the file system for users.
func fileError(err error) error {
	switch _, known := errors.AsType[*models.Error](err); {
	case err == nil, known:
		return err
	case errors.Is(err, beneath.ErrIrregular):
		return models.Conflict("This is a link or a special file. It can only be used in a notebook.")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR), errors.Is(err, beneath.ErrName):
		return models.NotFound("file")
	case errors.Is(err, fs.ErrExist), errors.Is(err, unix.ENOTEMPTY):
		return models.Conflict("There is already a file or directory with this name.")
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return models.NoCapacity("", "The disk of the shared directories is full.")
	case errors.Is(err, unix.EXDEV):
		return models.Conflict("The directories are on different file systems. Copy the files in a notebook.")
	case errors.Is(err, fs.ErrPermission):
		return models.Conflict("The permissions of a file or directory do not let the portal use it. In a notebook, run chmod -R u+rwX on it.")
	case errors.Is(err, unix.ENAMETOOLONG):
		return models.Conflict("Directories are nested too deeply: a path has more than %d bytes.", rules.MaxPath)
	case errors.Is(err, unix.EISDIR):
		return models.Conflict("This is a directory.")
	case errors.Is(err, unix.EAGAIN):
		return models.Conflict("The file is in use. Try again in a moment.")
	default:
		return err
	}
}

// gone reports whether an entry has been removed or replaced since its name was read.
func gone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, beneath.ErrIrregular)
}

// unreadable reports whether an entry is gone, or its permissions or its depth do not let the portal read it.
func unreadable(err error) bool {
	return gone(err) || errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENAMETOOLONG)
}
