package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"weir/storage/beneath"
)

// stageDir contains the staged sources, in a mount namespace of their own.
const stageDir = "/tmp"

func stagePath(i int) string { return filepath.Join(stageDir, strconv.Itoa(i)) }

// canStage reports whether this process can create mount namespaces. With the stage,
// root need not open the data directory to the sandbox's user; without root, the
// sandbox has the user of this process.
var canStage = sync.OnceValue(func() bool {
	return os.Geteuid() == 0 && onSpareThread(privateMounts) == nil
})

// onSpareThread runs f on a thread that exits afterwards, so that f can change the
// thread's namespaces.
func onSpareThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The main thread represents the process in /proc.
			defer runtime.UnlockOSThread()
			done <- onSpareThread(f)
			return
		}
		done <- f() // still locked, so the thread ends with the goroutine
	}()
	return <-done
}

// privateMounts moves this thread to a mount namespace of its own. Unmounts on the
// host propagate to it, because bubblewrap keeps the namespace while it runs.
func privateMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
}

// stagedSource is a file or directory of the host, or a new tmpfs.
type stagedSource struct {
	path    string
	noLinks bool  // a symbolic link anywhere in the path is an error
	tmpfs   bool  // with mode 1777
	mib     int64 // size of the tmpfs; 0: as the kernel chooses
}

// openSource opens a source without effect.
func openSource(s stagedSource) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC}
	if s.noLinks {
		how.Resolve = unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, s.path, &how)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return os.NewFile(uintptr(fd), s.path), nil
}

// stageSources mounts the sources at stagePath(0), stagePath(1) and so on, for this
// thread and its children.
func stageSources(sources []stagedSource) error {
	if err := privateMounts(); err != nil {
		return err
	}
	// All are opened first, because the stage may hide their directories.
	files := make([]*os.File, len(sources))
	for i, source := range sources {
		if source.tmpfs {
			continue
		}
		f, err := openSource(source)
		if err != nil {
			return err
		}
		files[i] = f
		defer f.Close()
	}
	if err := unix.Mount("tmpfs", stageDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return err
	}
	for i, f := range files {
		if f == nil {
			if err := stageTmpfs(sources[i].mib, stagePath(i)); err != nil {
				return fmt.Errorf("tmpfs: %w", err)
			}
		} else if err := stageOne(f, stagePath(i)); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
}

// stageTmpfs mounts a tmpfs in which the umask has no effect.
func stageTmpfs(mib int64, target string) error {
	if err := os.Mkdir(target, 0o755); err != nil {
		return err
	}
	options := "mode=1777"
	if mib > 0 {
		options += fmt.Sprintf(",size=%dm", mib)
	}
	if err := unix.Mount("tmpfs", target, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return err
	}
	dir, err := os.Open(target)
	if err != nil {
		return err
	}
	return errors.Join(beneath.ShareFD(int(dir.Fd())), dir.Close())
}

func stageOne(source *os.File, target string) error {
	info, err := source.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(target, 0o755)
	} else {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err != nil {
		return err
	}
	self := fmt.Sprintf("/proc/self/fd/%d", source.Fd())
	return unix.Mount(self, target, "", unix.MS_BIND|unix.MS_REC, "")
}
