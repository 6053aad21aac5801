package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/models/store/storetest"
)

const (
	viewers       = 10_000 // of one page at once
	streamsEach   = 62     // of one person, who may have 64
	viewerBudget  = 16     // KiB of the server's memory for each
	viewerChanges = 10     // that all of them are told of
)

// BenchmarkViewers opens ten thousand event streams of the pool, by many
// people from several addresses, and measures what each takes of the server's
// memory (peak: while all of them connect), and the time from sending a change
// until the last viewer has been told, in a process of the same machine.
// Sockets' buffers are the kernel's and not counted.
//
//	go test -run '^$' -bench Viewers -benchtime 1x ./e2e
func BenchmarkViewers(b *testing.B) {
	allowFiles(b, viewers+500)
	s := newServer(b, options{args: quiet})
	cookies := s.onlookers(viewers)
	for b.Loop() {
		// A new process: signing in leaves memory behind that hides what is measured.
		s.stop()
		s.start()
		before := s.memory(b, "VmRSS")
		crowd := s.crowd(b, cookies, viewers)
		eventually(b, ready, func() string {
			if n := s.metric(b, "weir_event_streams"); n != viewers {
				return fmt.Sprintf("%v of %d streams are open", n, viewers)
			}
			return ""
		})
		each := float64(s.memory(b, "VmRSS")-before) / viewers
		b.ReportMetric(each, "KiB/viewer")
		b.ReportMetric(float64(s.memory(b, "VmHWM")-before)/viewers, "peak-KiB/viewer")
		if each > viewerBudget {
			b.Errorf("a viewer takes %.1f KiB of the server's memory; at most %d", each, viewerBudget)
		}
		s.tellCrowd(b, crowd)
		crowd.leave()
	}
}

// onlookers signs in as many people as so many streams need.
func (s *server) onlookers(streams int) (cookies []string) {
	s.t.Helper()
	admin := s.api(s.admin())
	for i := range (streams + streamsEach - 1) / streamsEach {
		email := fmt.Sprintf("onlooker%d@example.org", i)
		admin.must("POST", "/users", map[string]any{"email": email, "name": email, "password": password}, nil)
		cookies = append(cookies, s.session(email).String())
	}
	return cookies
}

// tellCrowd changes the pool again and again, each time when everybody has
// been told of the time before.
func (s *server) tellCrowd(b *testing.B, c *crowd) {
	c.count()
	admin := s.api(s.admin())
	encoded := s.metric(b, "weir_events_encoded_total")
	var took []time.Duration
	for i := range viewerChanges {
		began := time.Now()
		admin.must("PUT", "/pool/devices/1", map[string]any{"sharing": "time-slicing", "mixed": i%2 == 0}, nil)
		eventually(b, ready, func() string {
			if n := c.told.Load(); n < int64(viewers*(i+1)) {
				return fmt.Sprintf("%d viewers have been told of %d changes", n, i+1)
			}
			return ""
		})
		took = append(took, time.Unix(0, c.last.Load()).Sub(began))
	}
	b.ReportMetric(median(took), "ms-to-last")
	per := (s.metric(b, "weir_events_encoded_total") - encoded) / viewerChanges
	b.ReportMetric(per, "encodings/change")
	if per != 1 || c.told.Load() != viewers*viewerChanges {
		b.Errorf("%d changes were encoded %.1f times each, and told %d times to %d viewers", viewerChanges, per, c.told.Load(), viewers)
	}
}

// allowFiles makes room for that many open files, as far as the system lets.
func allowFiles(b testing.TB, n uint64) {
	b.Helper()
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err == nil && limit.Max < n {
		b.Fatalf("a process may open %d files here, and this needs %d: raise the hard limit (ulimit -Hn)", limit.Max, n)
	}
	if err == nil && limit.Cur < n {
		limit.Cur = n
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// crowd are many readers of the pool's event stream.
type crowd struct {
	conns   []net.Conn
	told    atomic.Int64 // events, to all of them together
	last    atomic.Int64 // when the newest was read, in nanoseconds since 1970
	readers sync.WaitGroup
}

// crowd opens a stream for every viewer.
func (s *server) crowd(b testing.TB, cookies []string, viewers int) *crowd {
	b.Helper()
	c := &crowd{conns: make([]net.Conn, viewers)}
	b.Cleanup(c.leave)
	errs := make([]error, 32)
	storetest.Concurrently(len(errs), func(k int) {
		for i := k; i < viewers && errs[k] == nil; i += len(errs) {
			c.conns[i], errs[k] = s.view(i, cookies[i%len(cookies)])
		}
	})
	for _, err := range errs {
		if err != nil {
			b.Fatal(err)
		}
	}
	return c
}

// count counts the events of all streams.
func (c *crowd) count() {
	for _, conn := range c.conns {
		c.readers.Go(func() { c.read(conn) })
	}
}

// view opens one stream and reads its head. There are fewer ports than
// viewers may be: they come from different addresses.
func (s *server) view(i int, cookie string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: ready, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+i%8))}}
	conn, err := dialer.Dial("tcp", "127.0.0.1:"+strconv.Itoa(s.port))
	if err != nil {
		return nil, err
	}
	err = conn.SetDeadline(time.Now().Add(ready))
	if err == nil {
		_, err = io.WriteString(conn, "GET /events?topic=pool HTTP/1.1\r\nHost: localhost\r\nCookie: "+cookie+"\r\n\r\n")
	}
	head := make([]byte, 0, 2048)
	for err == nil && !strings.Contains(string(head), "retry: 2000\n\n") {
		var n int
		n, err = conn.Read(head[len(head):cap(head)])
		head = head[:len(head)+n]
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err != nil || !strings.HasPrefix(string(head), "HTTP/1.1 200 ") {
		conn.Close()
		return nil, fmt.Errorf("stream %d begins with %q: %w", i, head, err)
	}
	return conn, nil
}

// read counts the events of one stream until it ends.
func (c *crowd) read(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64)
	for {
		text, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		if string(text) == "data: pool\n" {
			c.last.Store(time.Now().UnixNano())
			c.told.Add(1)
		}
	}
}

func (c *crowd) leave() {
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close() // perhaps again
		}
	}
	c.readers.Wait()
}

// memory is a number of KiB of the server's process: VmRSS is what is
// resident, VmHWM the most that ever was.
func (s *server) memory(b *testing.B, name string) int64 {
	b.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(s.cmd.Process.Pid), "status"))
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(value, "kB\n")), 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("no %s in %s", name, status)
	return 0
}

// metric reads one number of /metrics.
func (s *server) metric(b *testing.B, name string) float64 {
	b.Helper()
	res, err := s.scrape()
	if err != nil {
		b.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		b.Fatalf("/metrics: %s, %v", res.Status, err)
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				b.Fatal(err)
			}
			return n
		}
	}
	b.Fatalf("/metrics has no %s", name)
	return 0
}
