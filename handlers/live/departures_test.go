package live

import (
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// reader is the other end of a real connection of a stream.
func reader(t *testing.T, h *Hub, user int64) (*Stream, net.Conn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	far, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { far.Close() })
	near, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	s := h.Subscribe(person(user), []string{"pool"}, "")
	h.attach(s, near)
	h.watch(s, near)
	return s, far
}

// until waits for what the kernel tells of a connection at once.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begin := time.Now(); !ok(); time.Sleep(time.Millisecond) {
		if time.Since(begin) > time.Minute {
			t.Fatal(what)
		}
	}
}

func TestReaderThatHangsUpIsForgotten(t *testing.T) {
	h := New(everybodyMay, always)
	defer h.Close()
	_, left := reader(t, h, 1)
	_, stays := reader(t, h, 2)
	if _, err := io.WriteString(stays, "what it sends means nothing\n"); err != nil {
		t.Fatal(err)
	}
	left.Close()
	until(t, "a stream is open whose reader has hung up", func() bool { n, _ := h.Count(); return n == 1 })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.openOf[2] != 1 || len(h.departed.streams) != 1 {
		t.Errorf("%d streams of who stays; %d are watched", h.openOf[2], len(h.departed.streams))
	}
}

// A stream whose reader has hung up makes room for another one of its user before anything has looked.
func TestReaderThatHangsUpMakesRoom(t *testing.T) {
	h := New(everybodyMay, always)
	defer h.Close()
	h.stop() // nothing looks from time to time
	h.running.Wait()
	var last net.Conn
	for range MaxStreams {
		_, last = reader(t, h, 1)
	}
	if h.Subscribe(person(1), []string{"pool"}, "") != nil {
		t.Fatal("one stream too many was begun")
	}
	last.Close()
	until(t, "no place was made", func() bool { return h.Subscribe(person(1), []string{"pool"}, "") != nil })
}

// The descriptor of a connection is soon that of another one: what is told of the former does not end the latter.
func TestDescriptorsAreUsedAgain(t *testing.T) {
	h := New(everybodyMay, always)
	defer h.Close()
	for i := range 200 {
		s, far := reader(t, h, 1)
		if i%2 == 0 {
			far.Close()
			until(t, fmt.Sprintf("stream %d is open", i), func() bool {
				h.endDeparted()
				n, _ := h.Count()
				return n == 0
			})
			continue
		}
		h.Drop(s)
		another, conn := reader(t, h, 1)
		h.endDeparted()
		if n, _ := h.Count(); n != 1 {
			t.Fatalf("%d streams are open after that of another reader has ended", n)
		}
		h.Drop(another)
		conn.Close()
	}
}
