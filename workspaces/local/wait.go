package local

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// awaitExit waits until a process, also one that is not a child, has exited.
func awaitExit(ctx context.Context, pid int, look func() liveness) error {
	if pid <= 1 {
		return nil
	}
	fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
	if errors.Is(err, unix.ESRCH) {
		return nil
	}
	if err != nil {
		return err
	}
	f := os.NewFile(uintptr(fd), "pidfd")
	defer f.Close()
	switch look() {
	case gone:
		return nil
	case unknown:
		return errUnknown
	}
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	// The runtime's poller waits, without a thread.
	return conn.Read(func(fd uintptr) bool {
		n, _ := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
		return n > 0
	})
}

// reap waits for an exited child and returns its exit code as a shell does.
func reap(child *exec.Cmd) int {
	if child.Wait(); child.ProcessState == nil {
		return -1
	}
	status, ok := child.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return child.ProcessState.ExitCode()
}
