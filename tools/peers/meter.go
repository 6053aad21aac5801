package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// clockTick is the unit of processor times in /proc: 100 Hz on every Linux
// that Go supports.
const clockTick = 10 * time.Millisecond

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

// processorTime is what a process has used so far; 0 when it has ended.
func processorTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name, in brackets, can contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const utime, stime = 11, 12
	if len(fields) <= stime {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[utime]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[stime]), 10, 64)
	return time.Duration(user+system) * clockTick
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
