package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"weir/pool/providers"
)

const (
	probePeriod   = time.Minute
	probeTimeout  = 5 * time.Second // of one zone
	probeAttempts = 3
)

// prober measures the latency to client zones, one after the other, in a goroutine of its
// own.
type prober struct {
	rounds   chan probeRound
	underway bool
	next     time.Time // of the next round
}

// probeRound is the result of a round. The error names the zones that were not measured.
type probeRound struct {
	latencies []providers.Latency
	err       error
}

// start starts a round if one is due.
func (p *prober) start(ctx context.Context, probes []providers.Probe) {
	now := time.Now()
	if len(probes) == 0 || p.underway || now.Before(p.next) {
		return
	}
	if p.rounds == nil {
		p.rounds = make(chan probeRound, 1)
	}
	p.underway, p.next = true, now.Add(probePeriod)
	go func() { p.rounds <- probe(ctx, probes) }()
}

// wait waits until nothing is measured.
func (p *prober) wait() {
	if p.underway {
		<-p.rounds
		p.underway = false
	}
}

func probe(ctx context.Context, probes []providers.Probe) (r probeRound) {
	for _, p := range probes {
		took, err := connectTime(ctx, p.Address)
		if err != nil {
			r.err = errors.Join(r.err, fmt.Errorf("zone %s: %w", p.Zone, err))
			continue
		}
		r.latencies = append(r.latencies, providers.Latency{Zone: p.Zone, Time: took})
	}
	return r
}

// connectTime is the shortest time in which a connection to an address is opened, its name
// resolved before.
func connectTime(ctx context.Context, address string) (least time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	var dialer net.Dialer
	for attempt := range 1 + probeAttempts {
		began := time.Now()
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return 0, err
		}
		took := time.Since(began)
		switch attempt {
		case 0: // finds which of the addresses of a name can be reached
			address = conn.RemoteAddr().String()
		case 1:
			least = took
		default:
			least = min(least, took)
		}
		if err := conn.Close(); err != nil {
			return 0, err
		}
	}
	return least, nil
}
