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

// stageDir is where staged sources appear, in a mount namespace of their own.
const stageDir = "/tmp"

func stagePath(i int) string { return filepath.Join(stageDir, strconv.Itoa(i)) }

// canStage reports whether this process may make mount namespaces. Root can, so
// that the data directory need not be open to the sandbox's user; elsewhere
// the sandbox runs as ourselves and reaches what we reach.
var canStage = sync.OnceValue(func() bool {
	return os.Geteuid() == 0 && onSpareThread(privateMounts) == nil
})

// onSpareThread runs f on a thread that ends afterwards, so that f may change
// the thread's namespaces.
func onSpareThread(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() == os.Getpid() {
			// The first thread stands for the process in /proc: not this one.
			defer runtime.UnlockOSThread()
			done <- onSpareThread(f)
			return
		}
		done <- f() // still locked, so the thread ends with the goroutine
	}()
	return <-done
}

// privateMounts gives this thread mounts of its own. What the host unmounts
// still goes away here: bubblewrap keeps these mounts as long as it runs.
func privateMounts() error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return err
	}
	return unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, "")
}

// stageSources makes the sources appear as stagePath(0), stagePath(1) and so on, for
// this thread and what it starts.
func stageSources(sources []string) error {
	if err := privateMounts(); err != nil {
		return err
	}
	// All are opened before the stage covers a directory they may lie in.
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
