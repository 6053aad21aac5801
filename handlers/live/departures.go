package live

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// departures finds the streams whose readers have hung up. Idle streams need no goroutine
// that reads for this: its stack takes more memory than all else of a stream. See epoll(7).
type departures struct {
	epoll   int                // descriptor; 0 before the first stream
	streams map[uint64]*Stream // by the number that epoll has for their connection
	last    uint64             // number
	events  [512]unix.EpollEvent
}

// watch has a stream found when the reader at the other end of its connection hangs up.
func (d *departures) watch(s *Stream, conn syscall.Conn) error {
	if d.epoll == 0 {
		epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
		if err != nil {
			return err
		}
		d.epoll, d.streams = epoll, map[uint64]*Stream{}
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	d.last++
	event := unix.EpollEvent{Events: unix.EPOLLRDHUP, Fd: int32(d.last), Pad: int32(d.last >> 32)}
	var added error
	err = raw.Control(func(fd uintptr) { added = unix.EpollCtl(d.epoll, unix.EPOLL_CTL_ADD, int(fd), &event) })
	if err = errors.Join(err, added); err == nil {
		d.streams[d.last], s.watched = s, d.last
	}
	return err
}

// forget is for a stream whose connection is being closed, which ends its part of epoll.
func (d *departures) forget(s *Stream) { delete(d.streams, s.watched) }

// list returns streams whose readers have hung up, without waiting for any: the others of more
// than a call returns are in the next one's.
func (d *departures) list() (left []*Stream) {
	if d.epoll == 0 {
		return nil
	}
	n, _ := unix.EpollWait(d.epoll, d.events[:], 0) // interrupted: the next call returns them
	for _, e := range d.events[:max(n, 0)] {
		if s := d.streams[uint64(uint32(e.Fd))|uint64(uint32(e.Pad))<<32]; s != nil {
			left = append(left, s)
		}
	}
	return left
}

func (d *departures) close() {
	if d.epoll != 0 {
		_ = unix.Close(d.epoll)
		d.epoll = 0
	}
}
