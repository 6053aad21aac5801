package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// candidate is a request that is measured, and the answer that it must get.
type candidate struct {
	Name      string
	network   string
	address   string
	request   []byte
	length    int   // of the body as sent
	tolerance int   // by how much the length may differ: pages show times
	servers   []int // process ids of the servers that take part

	start *jupyterStart // is measured in place of the request

	// alone means one connection. before then runs before each request, and counts neither
	// as its time nor as processor time.
	alone  bool
	before func(context.Context) error
}

// sample is one measurement of a candidate.
type sample struct {
	Rate      float64       // requests/s
	P50, P99  time.Duration // until the answer has been read
	CPU       time.Duration // processor time of the servers for one request
	Generator float64       // processors that the load generator used
}

// load describes how candidates are measured.
type load struct {
	connections  int
	warmUp, span time.Duration
}

// measure sends the candidate's request on all connections, each as soon as the
// last one is answered.
func (l load) measure(ctx context.Context, c candidate) (s sample, err error) {
	if c.start != nil {
		return c.start.measure(ctx)
	}
	ctx, timeout := context.WithTimeoutCause(ctx, l.warmUp+2*l.span+30*time.Second, errors.New("no answer for 30 seconds"))
	defer timeout()
	ctx, fail := context.WithCancelCause(ctx) // with the first error
	defer fail(nil)
	from := time.Now().Add(l.warmUp)
	until := from.Add(l.span)
	connections := l.connections
	if c.alone {
		connections = 1
	}
	var group sync.WaitGroup
	took := make([][]time.Duration, connections)
	for i := range connections {
		group.Go(func() {
			var err error
			if took[i], err = c.repeat(ctx, from, until); err != nil {
				fail(err)
			}
		})
	}
	used := meterBetween(ctx, c.servers, from, until)
	group.Wait()
	if err := context.Cause(ctx); err != nil {
		return s, fmt.Errorf("%s: %w", c.Name, err)
	}
	all := slices.Concat(took...)
	if len(all) == 0 {
		return s, fmt.Errorf("%s: nothing was answered within %s", c.Name, l.span)
	}
	slices.Sort(all)
	s = sample{Rate: float64(len(all)) / l.span.Seconds(), P50: all[len(all)/2], P99: all[len(all)*99/100],
		CPU: used.servers / time.Duration(len(all)), Generator: used.generator.Seconds() / l.span.Seconds()}
	if c.alone {
		s.Rate = float64(len(all)) / sum(all).Seconds()
		s.CPU, err = c.usedForOne(ctx, l.span)
	}
	return s, err
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

// repeat sends the request on one connection until the time is over, and returns
// how long each took that was answered between from and until.
func (c candidate) repeat(ctx context.Context, from, until time.Time) (took []time.Duration, err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	for {
		if err := c.change(ctx); err != nil {
			return nil, err
		}
		one, err := conn.send(c)
		if err != nil {
			return nil, err
		}
		answered := time.Now()
		if answered.After(until) {
			return took, nil
		}
		if answered.After(from) {
			took = append(took, one)
		}
	}
}

// usedForOne is the mean processor time of the servers for one request, each between two pauses in
// which the servers become idle: the kernel counts what a thread has used when it leaves its
// processor, or at its next tick.
func (c candidate) usedForOne(ctx context.Context, span time.Duration) (mean time.Duration, err error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.close()
	settled := func() time.Duration {
		time.Sleep(2 * time.Millisecond)
		return readMeter(c.servers).servers
	}
	n := time.Duration(0)
	for until := time.Now().Add(span); time.Now().Before(until); n++ {
		if err := c.change(ctx); err != nil {
			return 0, err
		}
		used := settled()
		if _, err := conn.send(c); err != nil {
			return 0, err
		}
		mean += settled() - used
	}
	return mean / max(n, 1), nil
}

// change runs what comes before a request.
func (c candidate) change(ctx context.Context) error {
	if c.before == nil {
		return nil
	}
	return c.before(ctx)
}

// connection is one that stays open.
type connection struct {
	net.Conn
	in    *bufio.Reader
	close func()
}

func (c candidate) connect(ctx context.Context) (*connection, error) {
	conn, err := new(net.Dialer).DialContext(ctx, c.network, c.address)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	return &connection{conn, bufio.NewReaderSize(conn, 16<<10), func() { stop(); conn.Close() }}, nil
}

// send sends the request, and returns how long it took to its answer, which it checks.
func (conn *connection) send(c candidate) (took time.Duration, err error) {
	sent := time.Now()
	if _, err := conn.Write(c.request); err != nil {
		return 0, err
	}
	a, err := readAnswer(conn.in)
	if err != nil {
		return 0, err
	}
	return time.Since(sent), c.check(a)
}

// check returns an error for a wrong answer.
func (c candidate) check(a answer) error {
	if off := a.length - c.length; a.status != 200 || off > c.tolerance || off < -c.tolerance {
		return fmt.Errorf("the answer is %d with %d bytes, not 200 with %d", a.status, a.length, c.length)
	}
	return nil
}

// jupyterStart starts Jupyter and stops it again.
type jupyterStart struct {
	begin func(context.Context) (status *http.Request, err error) // and how Jupyter's status is read through the proxy
	end   func(context.Context) error                             // until it has ended
}

// measure starts Jupyter once. The time is that from the request to Jupyter's first answer.
func (j jupyterStart) measure(ctx context.Context) (s sample, err error) {
	began := time.Now()
	status, err := j.begin(ctx)
	if err != nil {
		return s, err
	}
	err = eventuallyEvery(ctx, pollPeriod, starting, func() error {
		res, err := http.DefaultTransport.RoundTrip(status) // follows no redirect, as to a page that says “starting”
		if err != nil {
			return final{err}
		}
		res.Body.Close()
		if res.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", status.URL, res.Status)
		}
		return nil
	})
	if err != nil {
		return s, err
	}
	took := time.Since(began)
	return sample{Rate: 1 / took.Seconds(), P50: took, P99: took}, j.end(ctx)
}

// pollPeriod is how often the status is read until Jupyter answers.
const pollPeriod = 10 * time.Millisecond
