package live

import (
	"io"
	"net/http"
	"slices"
	"time"
)

const (
	keepAlive = 8 * time.Second // from one sign of life of a stream to the next
	// takeTime is how long a reader may take nothing before it is dropped. It is
	// shorter than the others of the portal wait for a server that is silent.
	takeTime = keepAlive / 2
	// spare is how many events may wait for a reader beside one of each topic.
	spare = 8
)

// What a stream says beside changes.
var (
	greeting = []byte(": weir\nretry: 2000\n\n") // browsers come back after 2 s
	alive    = []byte(": alive\n\n")
)

func eventOf(topic string) []byte { return []byte("event: change\ndata: " + topic + "\n\n") }

// connection is what a stream needs of a [net.Conn].
type connection interface {
	io.ReadWriteCloser
	SetWriteDeadline(time.Time) error
}

// Stream is one reader's event stream.
type Stream struct {
	follower *follower
	first    []byte      // the greeting, and what has changed since the page was read
	events   chan []byte // what is to be sent; closed when the stream ends

	// By the hub's lock.
	conn  connection // nil until the response's head is written
	ended bool
}

// Serve answers a request with the stream, and returns when that has begun.
// The connection is taken out of the HTTP server, which holds 25 KiB for each,
// while a stream needs half of that; there are many, and they are silent mostly.
func (h *Hub) Serve(w http.ResponseWriter, s *Stream) error {
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Transfer-Encoding", "identity") // no chunks: the stream ends with its connection
	w.WriteHeader(http.StatusOK)
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		h.Drop(s) // its reader has gone
		return nil
	}
	conn, _, err := control.Hijack()
	if err != nil {
		return err
	}
	h.attach(s, conn)
	return nil
}

// attach gives a stream its connection.
func (h *Hub) attach(s *Stream, conn connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s.ended {
		_ = conn.Close() // nothing was sent
		return
	}
	s.conn = conn
	go h.write(s, conn)
	go h.await(s, conn)
}

// write sends what comes for a stream until it ends.
func (h *Hub) write(s *Stream, conn connection) {
	defer h.Drop(s)
	if h.send(conn, s.first) != nil {
		return
	}
	s.first = nil
	for event := range s.events {
		if h.send(conn, event) != nil {
			return
		}
	}
}

func (h *Hub) send(conn connection, b []byte) error {
	if !h.holds() {
		return io.ErrClosedPipe
	}
	if err := conn.SetWriteDeadline(time.Now().Add(takeTime)); err != nil {
		return err
	}
	_, err := conn.Write(b)
	return err
}

// await ends a stream when its reader hangs up. What a reader sends means
// nothing.
func (h *Hub) await(s *Stream, conn connection) {
	defer h.Drop(s)
	var ignored [16]byte
	for {
		if _, err := conn.Read(ignored[:]); err != nil {
			return
		}
	}
}

// Drop ends a stream, whether it has begun or not. When it returns, nothing
// more is sent.
func (h *Hub) Drop(s *Stream) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(s)
}

// end is Drop for who holds the lock.
func (h *Hub) end(s *Stream) {
	if s.ended {
		return
	}
	s.ended = true
	close(s.events)
	if s.conn != nil {
		_ = s.conn.Close() // nothing is lost: what was written is on its way
	}
	h.forget(s)
}

// offer puts an event before a stream's reader, or ends the stream when too
// many lie there already. Its browser comes back and learns what it missed.
func (h *Hub) offer(s *Stream, event []byte) {
	select {
	case s.events <- event:
	default:
		h.end(s)
	}
}

// newStream is one that begins with the topics that have changed.
func newStream(f *follower, changed func(topic string) bool) *Stream {
	s := &Stream{follower: f, first: greeting, events: make(chan []byte, len(f.topics)+spare)}
	for _, topic := range f.topics {
		if changed(topic) {
			s.first = append(slices.Clip(s.first), eventOf(topic)...)
		}
	}
	return s
}
