package agent

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"reflect"
	"time"

	"weir/pool/providers"
)

// ErrShutOut means that the agent was revoked or fenced, or that its certificate has
// expired.
var ErrShutOut = errors.New("the portal has shut this agent out")

// errInvalid means that the portal rejects the content of a heartbeat.
var errInvalid = errors.New("the portal does not accept the report")

const (
	beatPeriod = 2 * time.Second  // unless the portal sets another
	applyPause = 10 * time.Second // between attempts to apply orders
)

// Portal processes heartbeats. The error ErrShutOut is final.
type Portal interface {
	Heartbeat(ctx context.Context, b providers.Heartbeat) (providers.Orders, error)
}

// Loop sends heartbeats for a machine.
type Loop struct {
	Portal  Portal
	Machine providers.Machine
	Digest  string // of the machine's identity; see providers.MachineDigest
	Log     *slog.Logger

	memory   buffer
	state    string            // of the provider, last logged
	failures int               // consecutive
	wrong    map[string]string // last logged errors of the machine

	latencies []providers.Latency // that were measured since the last heartbeat
	probing   prober

	applied   []providers.DeviceOrder
	applyFrom time.Time // of the next attempt
	applying  bool      // the last attempt failed
}

// response is the result of a heartbeat.
type response struct {
	sent   int // last round
	orders providers.Orders
	err    error
}

// Run sends heartbeats until ctx ends, or the error is ErrShutOut. It calls the
// machine from one goroutine, and sends heartbeats from another, so that sampling
// continues.
func (l *Loop) Run(ctx context.Context) error {
	sample, beat := time.NewTicker(samplePeriod), time.NewTimer(0)
	defer sample.Stop()
	defer beat.Stop()
	ctx, cancel := context.WithCancel(ctx)
	defer l.probing.wait()
	defer cancel()
	answers, underway := make(chan response, 1), false // one heartbeat at a time
	l.measure(ctx)
	for {
		select {
		case <-ctx.Done():
			if underway {
				<-answers
			}
			return nil
		case <-sample.C:
			l.measure(ctx)
		case <-beat.C:
			underway = true
			b, sent, err := l.compose(ctx)
			if err != nil {
				answers <- response{err: err}
				continue
			}
			go func() {
				orders, err := l.Portal.Heartbeat(ctx, b)
				answers <- response{sent, orders, err}
			}()
		case r := <-l.probing.rounds:
			l.probing.underway, l.latencies = false, r.latencies
			l.logError(ctx, "the latency to client zones cannot be measured", r.err)
		case a := <-answers:
			underway = false
			if errors.Is(a.err, ErrShutOut) {
				return a.err
			}
			beat.Reset(l.handle(ctx, a))
		}
	}
}

// measure records a sample of each device, and new faults.
func (l *Loop) measure(ctx context.Context) {
	now := time.Now()
	samples, err := l.Machine.Samples(ctx)
	l.logError(ctx, "the GPUs cannot be measured", err)
	l.memory.add(now, samples, l.Machine.Faults())
}

// compose creates a heartbeat. sent is the last round of samples in it.
func (l *Loop) compose(ctx context.Context) (b providers.Heartbeat, sent int, err error) {
	devices, err := l.Machine.Devices(ctx)
	if err != nil {
		return b, 0, err
	}
	for i := range devices {
		devices[i].Trouble, devices[i].SharingError = printable(devices[i].Trouble, 1000), printable(devices[i].SharingError, 1000)
	}
	b = providers.Heartbeat{GPUCode: providers.GPUCodeOf(l.Digest, devices), Devices: devices}
	b.Latencies, l.latencies = l.latencies, nil // one that is lost is soon measured again
	sent = l.memory.fill(&b, time.Now())
	return b, sent, nil
}

// handle processes a result, and returns the time until the next heartbeat.
func (l *Loop) handle(ctx context.Context, a response) time.Duration {
	if a.err != nil {
		if ctx.Err() == nil {
			l.fail(ctx, a)
		}
		return pause(l.failures)
	}
	if l.failures > 0 {
		l.Log.InfoContext(ctx, "the portal answers again", "after_attempts", l.failures)
	}
	l.failures = 0
	more := l.memory.discard(a.sent)
	l.applyOrders(ctx, a.orders)
	l.probing.start(ctx, a.orders.Probes)
	if more {
		return 0
	}
	return period(a.orders.Every)
}

func (l *Loop) fail(ctx context.Context, a response) {
	l.failures++
	level := slog.LevelDebug
	if l.failures == 1 {
		level = slog.LevelWarn
	}
	if errors.Is(a.err, errInvalid) { // it would be rejected again
		l.memory.discard(a.sent)
		level = slog.LevelError
	}
	l.Log.Log(ctx, level, "no beat; trying again", "attempt", l.failures, "err", a.err)
}

// applyOrders applies orders.
func (l *Loop) applyOrders(ctx context.Context, o providers.Orders) {
	if state := o.State + o.Reason; state != l.state {
		l.state = state
		l.Log.InfoContext(ctx, "provider state", "state", o.State, "reason", o.Reason)
	}
	now := time.Now()
	same := reflect.DeepEqual(o.Devices, l.applied)
	if same && !l.applying || same && now.Before(l.applyFrom) {
		return
	}
	err := l.Machine.Apply(ctx, o.Devices)
	l.applied, l.applying, l.applyFrom = o.Devices, err != nil, now.Add(applyPause)
	l.logError(ctx, "devices are not shared as ordered", err)
}

// logError logs an error of the machine when it changes.
func (l *Loop) logError(ctx context.Context, what string, err error) {
	if ctx.Err() != nil {
		return
	}
	text := ""
	if err != nil {
		text = err.Error()
	}
	if text != "" && text != l.wrong[what] {
		l.Log.WarnContext(ctx, what, "err", err)
	}
	if l.wrong == nil {
		l.wrong = map[string]string{}
	}
	l.wrong[what] = text
}

// period is the time until the next heartbeat, with a jitter of a tenth.
func period(every time.Duration) time.Duration {
	if every <= 0 {
		every = beatPeriod
	}
	every = min(max(every, 100*time.Millisecond), time.Minute)
	return every - every/10 + rand.N(every/5)
}
