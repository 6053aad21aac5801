package agent

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"weir/pool/providers"
)

// The latency to each zone that can be reached is in a heartbeat, once a round; the log names
// the others.
func TestLatencies(t *testing.T) {
	open, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = open.Close() }()
	closed, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	portal := &desk{orders: providers.Orders{State: "online", Every: 100 * time.Millisecond, Probes: []providers.Probe{
		{Zone: "far", Address: closed.Addr().String()}, {Zone: "near", Address: open.Addr().String()}}}}
	loop := Loop{Portal: portal, Machine: &stub{gpus: 1}, Log: slog.New(slog.NewTextHandler(&log, nil))}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- loop.Run(ctx) }()
	var reports []providers.Latencies
	for deadline := time.Now().Add(time.Minute); len(reports) == 0 || len(portal.heard()) < 6; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d heartbeats: %s", len(portal.heard()), log.String())
		}
		reports = nil
		for _, b := range portal.heard() {
			if len(b.Latencies) > 0 {
				reports = append(reports, b.Latencies)
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(reports) != 1 || len(reports[0]) != 1 || reports[0][0].Zone != "near" || reports[0][0].Time <= 0 {
		t.Errorf("%+v", reports)
	}
	if n := strings.Count(log.String(), "zone far"); n != 1 || strings.Contains(log.String(), "zone near") {
		t.Error(log.String())
	}
}

// heard are the heartbeats so far.
func (d *desk) heard() []providers.Heartbeat {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.beats
}
