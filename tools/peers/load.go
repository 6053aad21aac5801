package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
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
	ctx, timeout := context.WithTimeoutCause(ctx, l.warmUp+l.span+30*time.Second, errors.New("no answer for 30 seconds"))
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
	took, alone := make([][]time.Duration, connections), time.Duration(0)
	for i := range connections {
		group.Go(func() {
			var err error
			var used time.Duration
			if took[i], used, err = c.repeat(ctx, from, until); err != nil {
				fail(err)
			}
			if c.alone {
				alone = used
			}
		})
	}
	used := meterBetween(ctx, c.servers, from, until)
	group.Wait()
	if c.alone {
		used.servers = alone
	}
	if err := context.Cause(ctx); err != nil {
		return s, fmt.Errorf("%s: %w", c.Name, err)
	}
	all := slices.Concat(took...)
	if len(all) == 0 {
		return s, fmt.Errorf("%s: nothing was answered within %s", c.Name, l.span)
	}
	slices.Sort(all)
	return sample{Rate: float64(connections*len(all)) / sum(all).Seconds(), P50: all[len(all)/2], P99: all[len(all)*99/100],
		CPU: used.servers / time.Duration(len(all)), Generator: used.generator.Seconds() / l.span.Seconds()}, nil
}

func sum(all []time.Duration) (total time.Duration) {
	for _, d := range all {
		total += d
	}
	return total
}

// repeat sends the request on one connection until the time is over. It returns
// how long each took that was answered between from and until and, for a candidate that is
// alone, the processor time of the servers within these.
func (c candidate) repeat(ctx context.Context, from, until time.Time) (took []time.Duration, used time.Duration, err error) {
	conn, err := new(net.Dialer).DialContext(ctx, c.network, c.address)
	if err != nil {
		return nil, 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	in := bufio.NewReaderSize(conn, 16<<10)
	for sent := time.Now(); ; {
		if c.before != nil {
			if err := c.before(ctx); err != nil {
				return nil, 0, err
			}
		}
		var before time.Duration
		if c.alone {
			before, sent = settledTime(c.servers), time.Now()
		}
		if _, err := conn.Write(c.request); err != nil {
			return nil, 0, err
		}
		a, err := readAnswer(in)
		if err == nil {
			err = c.check(a)
		}
		if err != nil {
			return nil, 0, err
		}
		answered := time.Now()
		if answered.After(until) {
			return took, used, nil
		}
		if answered.After(from) {
			took = append(took, answered.Sub(sent))
			if c.alone {
				used += settledTime(c.servers) - before
			}
		}
		sent = answered
	}
}

// check returns an error for a wrong answer.
func (c candidate) check(a answer) error {
	if off := a.length - c.length; a.status != 200 || off > c.tolerance || off < -c.tolerance {
		return fmt.Errorf("the answer is %d with %d bytes, not 200 with %d", a.status, a.length, c.length)
	}
	return nil
}

// settledTime is the processor time of servers once they are idle: the kernel counts that of a
// thread when it leaves its processor.
func settledTime(servers []int) time.Duration {
	time.Sleep(2 * time.Millisecond)
	return readMeter(servers).servers
}
