package main

import (
	"context"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// meter is processor time.
type meter struct{ servers, generator time.Duration }

// meterBetween returns the processor time that was used between two times. It
// returns at the second one, or when ctx ends.
func meterBetween(ctx context.Context, servers []int, from, until time.Time) meter {
	read := func(at time.Time) meter {
		select {
		case <-ctx.Done():
		case <-time.After(time.Until(at)):
		}
		return readMeter(servers)
	}
	before := read(from)
	after := read(until)
	return meter{after.servers - before.servers, after.generator - before.generator}
}

func readMeter(servers []int) (m meter) {
	for _, pid := range servers {
		m.servers += processorTime(pid)
	}
	m.generator = processorTime(os.Getpid())
	return m
}

// processorTime is what all threads of a process have used so far; 0 when it has ended.
// The clock of a process is what clock_getcpuclockid(3) makes of its ID.
func processorTime(pid int) time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|scheduler), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// listenerOf returns the process id of the server behind a Unix socket.
func listenerOf(socket string) (pid int, err error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(fd)
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: socket}); err != nil {
		return 0, err
	}
	peer, err := syscall.GetsockoptUcred(fd, syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	if err != nil {
		return 0, err
	}
	return int(peer.Pid), nil
}
