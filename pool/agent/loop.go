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

// ErrShutOut says that the portal does not listen to this agent any more: its
// key was revoked or is used twice, or its certificate has expired.
var ErrShutOut = errors.New("the portal has shut this agent out")

// errInvalid says that the portal cannot accept what was said.
var errInvalid = errors.New("the portal does not accept the report")

const (
	samplePeriod = 5 * time.Second
	beatPeriod   = 2 * time.Second  // until the portal says otherwise
	maxPause     = 15 * time.Second // between attempts to reach the portal
	applyPause   = 10 * time.Second // between attempts to share devices as ordered
)

// Portal takes a heartbeat and answers with orders. An error that is
// ErrShutOut is final.
type Portal interface {
	Heartbeat(ctx context.Context, b providers.Heartbeat) (providers.Orders, error)
}

// Loop reports a machine's GPUs to the portal until it is told to end.
type Loop struct {
	Portal  Portal
	Machine providers.Machine
	Digest  string // of the machine's identity; see providers.MachineDigest
	Log     *slog.Logger

	memory   memory
	state    string            // the provider's, as last heard
	failures int               // in a row
	wrong    map[string]string // what is wrong with the GPUs, so that it is logged once

	applied   []providers.DeviceOrder
	applyFrom time.Time // not before then is the same tried again
	applying  bool      // the last attempt did not succeed
}

// answer is how a heartbeat ended.
type answer struct {
	sent   mark
	orders providers.Orders
	err    error
}

// Run reports until ctx ends, which is no error, or the portal shuts the agent
// out. All calls of the machine come from here, one at a time; a heartbeat
// waits for the portal beside it, so that measuring goes on.
func (l *Loop) Run(ctx context.Context) error {
	sample, beat := time.NewTicker(samplePeriod), time.NewTimer(0)
	defer sample.Stop()
	defer beat.Stop()
	answers, underway := make(chan answer, 1), false // one heartbeat at a time
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
				answers <- answer{err: err}
				continue
			}
			go func() {
				orders, err := l.Portal.Heartbeat(ctx, b)
				answers <- answer{sent, orders, err}
			}()
		case a := <-answers:
			underway = false
			if errors.Is(a.err, ErrShutOut) {
				return a.err
			}
			beat.Reset(l.handle(ctx, a))
		}
	}
}

// measure keeps one sample of each device, and the faults since the last.
func (l *Loop) measure(ctx context.Context) {
	now := time.Now()
	samples, err := l.Machine.Samples(ctx)
	l.complain(ctx, "the GPUs cannot be measured", err)
	l.memory.keep(now, samples, l.Machine.Faults())
}

// compose makes a heartbeat of what is known now.
func (l *Loop) compose(ctx context.Context) (providers.Heartbeat, mark, error) {
	devices, err := l.Machine.Devices(ctx)
	if err != nil {
		return providers.Heartbeat{}, mark{}, err
	}
	for i := range devices {
		devices[i].Trouble = visible(devices[i].Trouble, 1000)
	}
	b := providers.Heartbeat{GPUCode: providers.GPUCodeOf(l.Digest, devices), Devices: devices}
	sent := l.memory.fill(&b, time.Now())
	return b, sent, nil
}

// handle does what an answer asks for, and returns after which time to speak
// again.
func (l *Loop) handle(ctx context.Context, a answer) time.Duration {
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
	more := l.memory.forget(a.sent)
	l.follow(ctx, a.orders)
	if more {
		return 0
	}
	return period(a.orders.Every)
}

func (l *Loop) fail(ctx context.Context, a answer) {
	l.failures++
	level := slog.LevelDebug
	if l.failures == 1 {
		level = slog.LevelWarn
	}
	if errors.Is(a.err, errInvalid) { // what cannot be said once cannot be said later
		l.memory.forget(a.sent)
		level = slog.LevelError
	}
	l.Log.Log(ctx, level, "no beat; trying again", "attempt", l.failures, "err", a.err)
}

// follow takes orders.
func (l *Loop) follow(ctx context.Context, o providers.Orders) {
	if heard := o.State + o.Reason; heard != l.state {
		l.state = heard
		l.Log.InfoContext(ctx, "the portal says", "state", o.State, "reason", o.Reason)
	}
	now := time.Now()
	same := reflect.DeepEqual(o.Devices, l.applied)
	if same && !l.applying || same && now.Before(l.applyFrom) {
		return
	}
	err := l.Machine.Apply(ctx, o.Devices)
	l.applied, l.applying, l.applyFrom = o.Devices, err != nil, now.Add(applyPause)
	l.complain(ctx, "devices are not shared as ordered", err)
}

// complain logs what is wrong with the machine when it begins, and when it
// changes.
func (l *Loop) complain(ctx context.Context, what string, err error) {
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

// period is the time to the next heartbeat, a tenth more or less, so that agents
// that were started together do not stay together.
func period(every time.Duration) time.Duration {
	if every <= 0 {
		every = beatPeriod
	}
	every = min(max(every, 100*time.Millisecond), time.Minute)
	return every - every/10 + rand.N(every/5)
}

// pause is the time to the next attempt after so many that have failed in a
// row: twice as long each time, up to maxPause, and half of it by chance.
func pause(failures int) time.Duration { return pauseUpTo(maxPause, failures) }

func pauseUpTo(most time.Duration, failures int) time.Duration {
	d := min(most, time.Second<<min(max(failures-1, 0), 20))
	return d/2 + rand.N(d/2)
}
