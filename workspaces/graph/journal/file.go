package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"weir/models"
)

// File is a journal that an attempt writes.
type File struct {
	file  *os.File
	copy  *os.File // for whoever shows it; nil: none
	whole int64    // bytes that remain when the attempt begins
	size  int64    // bytes with what the attempt has written
	begun bool
}

// maxRevised is the size in bytes from which other plans and measurements are not kept: utilization that
// wavers around a threshold revises the plan again and again, and a journal above [MaxBytes] could not be read.
const maxRevised = MaxBytes / 4

// Open opens a journal for an attempt, and tells what it says. Without resume it becomes empty;
// in either case, nothing changes before the first event.
// The error is a conflict if another attempt is running.
func Open(path string, resume bool) (f *File, s State, err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, s, err
	}
	defer func() {
		if err != nil {
			_ = file.Close() // it was not changed
		}
	}()
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return nil, s, models.Conflict("The graph is already running: another process writes its journal %s.", path)
	} else if err != nil {
		return nil, s, fmt.Errorf("lock %s: %w", path, err)
	}
	info, err := file.Stat()
	if err != nil {
		return nil, s, err
	}
	if !info.Mode().IsRegular() {
		return nil, s, fmt.Errorf("%s: it is not a regular file", path)
	}
	if resume {
		var why models.Text
		if s, why, err = Read(io.NewSectionReader(file, 0, MaxBytes+1)); err == nil && !why.Empty() {
			err = fmt.Errorf("%s: %s", path, why)
		}
		if err != nil {
			return nil, s, err
		}
	}
	return &File{file: file, whole: s.whole, size: s.whole}, s, nil
}

// CopyTo also writes a copy of the journal, from its beginning, for whoever shows it. Call it
// before the first event.
func (f *File) CopyTo(path string) error {
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(f.file, 0, f.whole)); err != nil {
		return errors.Join(err, to.Close())
	}
	f.copy = to
	return nil
}

// Append writes an event to the disk.
func (f *File) Append(e Event) error {
	if (e.Kind == Plan || e.Kind == Sample) && f.size > maxRevised {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if line = append(line, '\n'); !f.begun {
		if err := f.file.Truncate(f.whole); err != nil {
			return err
		}
		f.begun = true
	}
	f.size += int64(len(line))
	if _, err := f.file.Write(line); err != nil {
		return err
	}
	if err := f.file.Sync(); err != nil {
		return err
	}
	if f.copy != nil {
		if _, err := f.copy.Write(line); err != nil { // the graph goes on without being shown
			_ = f.copy.Close()
			f.copy = nil
		}
	}
	return nil
}

// Close ends the attempt.
func (f *File) Close() error {
	err := f.file.Close()
	if f.copy != nil {
		err = errors.Join(err, f.copy.Close())
	}
	return err
}
