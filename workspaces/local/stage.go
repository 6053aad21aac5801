package local

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
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

// stageSources mounts the sources at stagePath(0), stagePath(1) and so on, for this
// thread and its children.
func stageSources(sources []string) error {
	if err := privateMounts(); err != nil {
		return err
	}
	// All are opened first, because the stage may hide their directories.
	files := make([]*os.File, len(sources))
	for i, source := range sources {
		fd, err := unix.Open(source, unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		files[i] = os.NewFile(uintptr(fd), source)
		defer files[i].Close()
	}
	if err := unix.Mount("tmpfs", stageDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755,size=64k"); err != nil {
		return err
	}
	for i, f := range files {
		if err := stageOne(f, stagePath(i)); err != nil {
			return fmt.Errorf("%s: %w", f.Name(), err)
		}
	}
	return nil
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
