package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	changing    = 10 * time.Second // how long the pool changes
	changeEvery = 100 * time.Millisecond
	soonest     = 250 * time.Millisecond // after which live.js fetches a page
	// connections are what all viewers share for their pages: browsers have some each,
	// for which no process has enough descriptors. Requests wait for one.
	connections = 512
)

// BenchmarkViewersFetch measures what follows when a page of many viewers changes ten
// times a second: each viewer who is told of a change fetches the page, as live.js does.
// Viewers and server share the machine.
//
//   - requests/s, fetches/change: pages fetched, until all viewers have one that is not
//     older than the last change
//   - ms-to-last: from the last change until the last viewer was told of it
//   - s-to-fresh: from the last change until all viewers have its page
//   - cpu-s: processor time of the server; cpu-ms/fetch: for one page
//   - renders/change: how often the content that all viewers share was rendered
//   - KiB/viewer: the server's memory when all are connected; peak: the most until the end
//
// Usage:
//
//	go test -run '^$' -bench ViewersFetch -benchtime 1x ./e2e
func BenchmarkViewersFetch(b *testing.B) {
	for _, n := range []int{100, 1000, viewers} {
		b.Run(strconv.Itoa(n), func(b *testing.B) { benchFetch(b, n) })
	}
}

func benchFetch(b *testing.B, viewers int) {
	allowFiles(b, uint64(viewers+connections+500))
	s := newServer(b, options{args: quiet})
	cookies := s.onlookers(viewers)
	for b.Loop() {
		s.stop()
		s.start()
		before := s.memory(b, "VmRSS")
		crowd := s.crowd(b, cookies, viewers)
		b.ReportMetric(float64(s.memory(b, "VmRSS")-before)/float64(viewers), "KiB/viewer")
		pages := s.browsers(b, crowd, cookies)
		s.changePool(b, pages)
		b.ReportMetric(float64(s.memory(b, "VmHWM")-before)/float64(viewers), "peak-KiB/viewer")
		pages.leave()
	}
}

// changePool changes the pool for a while, and waits until all viewers have the result.
func (s *server) changePool(b *testing.B, c *browsers) {
	const renders = `weir_shared_contents_rendered_total{page="/pool"}`
	b.Logf("load before: %s", loadOf(b))
	admin := s.api(s.admin())
	c.fetch(c.pages[0]) // renders the content once, so that it is counted
	cpu, rendered, fetched := s.metric(b, "process_cpu_seconds_total"), s.metric(b, renders), c.fetched.Load()
	began, last, changes := time.Now(), time.Time{}, 0
	ticks := time.NewTicker(changeEvery)
	defer ticks.Stop()
	for ; time.Since(began) < changing; <-ticks.C {
		last = time.Now()
		admin.must("PUT", "/pool/devices/1", map[string]any{"sharing": "time-slicing", "mixed": changes%2 == 0}, nil)
		changes++
	}
	eventually(b, 2*time.Minute, func() string {
		if n := c.outdated(last); n > 0 {
			return fmt.Sprintf("%d viewers have an older page", n)
		}
		return ""
	})
	took := time.Since(began).Seconds()
	pages := float64(c.fetched.Load() - fetched)
	cpu = s.metric(b, "process_cpu_seconds_total") - cpu
	b.ReportMetric(1000*c.lastTold().Sub(last).Seconds(), "ms-to-last")
	b.ReportMetric(time.Since(last).Seconds(), "s-to-fresh")
	b.ReportMetric(float64(changes)/changing.Seconds(), "changes/s")
	b.ReportMetric(pages/took, "requests/s")
	b.ReportMetric(pages/float64(changes), "fetches/change")
	b.ReportMetric((s.metric(b, renders)-rendered)/float64(changes), "renders/change")
	b.ReportMetric(cpu, "cpu-s")
	b.ReportMetric(1000*cpu/pages, "cpu-ms/fetch")
	b.ReportMetric(float64(c.failed.Load()), "failures")
	if n := c.failed.Load(); n > 0 {
		b.Errorf("%d fetches failed, such as %v", n, c.failure.Load())
	}
	b.Logf("load after: %s", loadOf(b))
}

// loadOf is the load of the machine.
func loadOf(b *testing.B) string {
	b.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		b.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// browsers are viewers who fetch the page.
type browsers struct {
	*crowd
	client          *http.Client
	url             string
	pages           []*livePage
	fetched, failed atomic.Int64
	failure         atomic.Value // error
	fetching        sync.WaitGroup
	stop            context.CancelFunc
	stopped         context.Context
}

// livePage is one page in a browser, with what live.js and htmx know.
type livePage struct {
	cookie string
	phase  float64
	due    atomic.Bool   // a fetch will follow
	next   chan struct{} // at most one fetch waits for the one before
	spread time.Duration
	// Times in nanoseconds since 1970.
	told    atomic.Int64 // of the newest event
	current atomic.Int64 // when the newest page was asked for
}

// browsers lets a crowd fetch pages. It reads the crowd's streams in its place.
func (s *server) browsers(b *testing.B, crowd *crowd, cookies []string) *browsers {
	c := &browsers{crowd: crowd, url: "http://127.0.0.1:" + strconv.Itoa(s.port) + "/pool"}
	c.client = &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxConnsPerHost: connections, MaxIdleConnsPerHost: connections},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.stopped, c.stop = context.WithCancel(context.Background())
	b.Cleanup(c.leave)
	for i, conn := range crowd.conns {
		p := &livePage{cookie: cookies[i%len(cookies)], phase: rand.Float64(), next: make(chan struct{}, 1)}
		c.pages = append(c.pages, p)
		c.fetching.Go(func() { c.read(p, conn) })
		c.fetching.Go(func() {
			for {
				select {
				case <-c.stopped.Done():
					return
				case <-p.next:
					c.fetch(p)
				}
			}
		})
	}
	return c
}

// read does what live.js does with each event.
func (c *browsers) read(p *livePage, conn net.Conn) {
	r, event := bufio.NewReaderSize(conn, 64), ""
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return
		}
		name, value, _ := strings.Cut(strings.TrimSpace(string(line)), ": ")
		switch {
		case name == "event":
			event = value
		case name == "data" && event == "jitter":
			ms, _ := strconv.ParseFloat(value, 64)
			p.spread = time.Duration(ms * float64(time.Millisecond))
		case name == "data" && event == "change":
			p.told.Store(time.Now().UnixNano())
			if p.due.CompareAndSwap(false, true) {
				time.AfterFunc(p.delay(time.Now()), func() {
					p.due.Store(false)
					select {
					case p.next <- struct{}{}:
					default:
					}
				})
			}
			p.spread = 0
		}
	}
}

// delay is the time until a page is fetched after a change, as in live.js.
func (p *livePage) delay(now time.Time) time.Duration {
	if p.spread == 0 {
		return soonest
	}
	spread := float64(p.spread)
	after := math.Mod(p.phase*spread-float64(now.Add(soonest).UnixNano()), spread)
	if after < 0 {
		after += spread
	}
	return soonest + time.Duration(after)
}

// The request of htmx in Chromium.
var htmxHeaders = map[string]string{
	"sec-ch-ua": `"Chromium";v="142", "Not_A Brand";v="99"`, "sec-ch-ua-mobile": "?0", "sec-ch-ua-platform": `"Linux"`,
	"User-Agent":      "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
	"Accept-Encoding": "gzip, deflate, br, zstd", "Accept-Language": "en-US,en;q=0.9", "Accept": "text/html",
	"HX-Request": "true", "HX-Target": "main", "HX-Current-URL": "http://localhost:8080/pool",
	"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty", "Referer": "http://localhost:8080/pool",
}

func (c *browsers) fetch(p *livePage) {
	began := time.Now()
	err := c.get(p)
	switch {
	case err == nil:
		c.fetched.Add(1)
		p.current.Store(began.UnixNano())
	case c.stopped.Err() == nil:
		c.failed.Add(1)
		c.failure.Store(err)
	}
}

func (c *browsers) get(p *livePage) error {
	req, err := http.NewRequestWithContext(c.stopped, "GET", c.url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cookie", p.cookie)
	for name, value := range htmxHeaders {
		req.Header.Set(name, value)
	}
	res, err := c.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	n, err := io.Copy(io.Discard, res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || n < 1000 || res.Header.Get("Content-Encoding") != "gzip") {
		err = fmt.Errorf("%s, %d bytes, %q", res.Status, n, res.Header.Get("Content-Encoding"))
	}
	return err
}

// outdated counts the viewers who have not been told of a change at that time, or have not
// asked for a page since.
func (c *browsers) outdated(change time.Time) (n int) {
	for _, p := range c.pages {
		if told := p.told.Load(); told < change.UnixNano() || p.current.Load() < told {
			n++
		}
	}
	return n
}

// lastTold is when the last event was read.
func (c *browsers) lastTold() (last time.Time) {
	for _, p := range c.pages {
		if told := time.Unix(0, p.told.Load()); told.After(last) {
			last = told
		}
	}
	return last
}

func (c *browsers) leave() {
	c.stop()
	c.crowd.leave()
	c.fetching.Wait()
	c.client.CloseIdleConnections()
}
