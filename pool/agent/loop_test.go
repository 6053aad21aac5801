package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"weir/pool/providers"
)

// stub is a machine that does as a test says.
type stub struct {
	mu      sync.Mutex
	gpus    int
	broken  error
	faults  []providers.Fault
	applied [][]providers.DeviceOrder
	refuses int // times that Apply fails
	process string
}

func (s *stub) Devices(context.Context) (list []providers.DeviceReport, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.gpus {
		list = append(list, providers.DeviceReport{UUID: fmt.Sprint("GPU-", i), Index: i})
	}
	return list, s.broken
}

func (s *stub) Samples(context.Context) (list []providers.Sample, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range s.gpus {
		sample := providers.Sample{UUID: fmt.Sprint("GPU-", i)}
		if s.process != "" {
			sample.Processes = []providers.Process{{PID: 1, Name: s.process}}
		}
		list = append(list, sample)
	}
	return list, s.broken
}

func (s *stub) Faults() []providers.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.faults
	s.faults = nil
	return told
}

func (s *stub) Apply(_ context.Context, orders []providers.DeviceOrder) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.applied = append(s.applied, orders)
	if s.refuses > 0 {
		s.refuses--
		return errors.New("busy")
	}
	return nil
}

// desk is a portal that answers as a test says, and keeps what it heard.
type desk struct {
	mu     sync.Mutex
	away   bool
	takes  time.Duration // to answer, or to fail
	err    error
	orders providers.Orders
	beats  []providers.Heartbeat
	times  []time.Time
}

func (d *desk) Heartbeat(ctx context.Context, b providers.Heartbeat) (providers.Orders, error) {
	d.mu.Lock()
	d.times = append(d.times, time.Now())
	takes := d.takes
	d.mu.Unlock()
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		return providers.Orders{}, ctx.Err()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.away {
		return providers.Orders{}, errors.New("no route")
	}
	d.beats = append(d.beats, b)
	return d.orders, d.err
}

// running is a loop in a bubble of time.
type running struct {
	*stub
	*desk
	log  *bytes.Buffer
	stop func() error
}

func run(t *testing.T, gpus int) *running {
	r := &running{stub: &stub{gpus: gpus}, desk: &desk{orders: providers.Orders{State: "online", Every: 2 * time.Second}}, log: &bytes.Buffer{}}
	ctx, cancel := context.WithCancel(t.Context())
	l := &Loop{Portal: r.desk, Machine: r.stub, Digest: "machine", Log: slog.New(slog.NewTextHandler(r.log, nil))}
	done := make(chan error, 1)
	go func() { done <- l.Run(ctx) }()
	r.stop = func() error { cancel(); return <-done }
	synctest.Wait()
	return r
}

// set changes how the machine and the portal are.
func (r *running) set(change func()) {
	r.stub.mu.Lock()
	defer r.stub.mu.Unlock()
	r.desk.mu.Lock()
	defer r.desk.mu.Unlock()
	change()
}

// pass lets time go by until nothing moves any more.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// sent sums the samples of beats.
func sent(beats []providers.Heartbeat) (n int) {
	for _, b := range beats {
		n += len(b.Samples)
	}
	return n
}

func TestBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 2)
		r.set(func() {
			r.process = "bad\x00name\n"
			r.faults = []providers.Fault{{UUID: "GPU-1", XID: 79}}
		})
		pass(time.Minute)
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if n := len(r.beats); n < 27 || n > 35 {
			t.Errorf("%d beats in a minute at two seconds", n)
		}
		first := r.beats[0]
		if first.GPUCode != providers.GPUCode("machine", []string{"GPU-0", "GPU-1"}) || len(first.Devices) != 2 || len(first.Samples) != 2 {
			t.Errorf("the first heartbeat is %+v", first)
		}
		if n := sent(r.beats); n != 2*13 && n != 2*12 { // the last may not have been sent yet
			t.Errorf("%d samples were sent", n)
		}
		faults := 0
		for _, b := range r.beats {
			for _, f := range b.Faults {
				faults++
				if f.XID != 79 || f.Age < 0 || f.Age > 3*time.Second {
					t.Errorf("the fault is %+v", f)
				}
			}
			for _, s := range b.Samples {
				if len(s.Processes) > 0 && s.Processes[0].Name != "bad?name?" {
					t.Errorf("a process is called %q", s.Processes[0].Name)
				}
			}
		}
		if faults != 1 {
			t.Errorf("the fault was told %d times", faults)
		}
	})
}

func TestAwayAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 1)
		pass(10 * time.Second)
		r.set(func() { r.away, r.takes = true, requestTime })
		before := sent(r.beats)
		began := time.Now()
		pass(2 * time.Hour)
		tries := slices.DeleteFunc(slices.Clone(r.times), func(at time.Time) bool { return at.Before(began.Add(10 * time.Minute)) })
		for i := range tries[1:] {
			if gap := tries[i+1].Sub(tries[i]); gap < requestTime+maxPause/2 || gap > requestTime+maxPause {
				t.Fatalf("%s are between two attempts", gap)
			}
		}
		r.set(func() { r.away, r.takes, r.beats = false, 0, nil })
		pass(maxPause + requestTime)
		if len(r.beats) == 0 {
			t.Fatal("no beat after the portal was back")
		}
		kept := r.beats[0].Samples
		if len(kept) != maxRounds || before == 0 {
			t.Errorf("%d samples were kept, not those of an hour", len(kept))
		}
		for i, s := range kept {
			late := time.Duration(len(kept)-1-i) * samplePeriod
			if s.Age < late || s.Age > late+samplePeriod {
				t.Fatalf("sample %d of %d is said to be %s old", i, len(kept), s.Age)
			}
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
		if n := strings.Count(r.log.String(), "no beat"); n != 1 {
			t.Errorf("the log says %d times that the portal is away", n)
		}
	})
}

// An hour of 64 GPUs does not fit into one request.
func TestManySamplesGoInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 64)
		r.set(func() { r.away = true })
		pass(time.Hour + time.Minute)
		r.set(func() { r.away, r.beats = false, nil })
		pass(maxPause)
		for _, b := range r.beats {
			if len(b.Samples) > maxPerBeat {
				t.Errorf("%d samples in one heartbeat", len(b.Samples))
			}
		}
		if n := sent(r.beats); n < 64*maxRounds || n > 64*(maxRounds+4) {
			t.Errorf("%d samples arrived", n)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestShutOutEndsTheLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 1)
		r.set(func() { r.err = fmt.Errorf("%w: two agents", ErrShutOut) })
		pass(3 * time.Second)
		n := len(r.beats)
		pass(time.Hour)
		if err := r.stop(); !errors.Is(err, ErrShutOut) || len(r.beats) != n {
			t.Errorf("%v, %d beats after it", err, len(r.beats)-n)
		}
	})
}

func TestOrdersAreAppliedWhenTheyChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 1)
		pass(10 * time.Second)
		if len(r.applied) != 0 {
			t.Errorf("applied without orders: %v", r.applied)
		}
		r.set(func() { r.orders.Devices = []providers.DeviceOrder{{UUID: "GPU-0", Sharing: "mps"}} })
		pass(time.Minute)
		if len(r.applied) != 1 {
			t.Errorf("applied %d times", len(r.applied))
		}
		r.set(func() { r.refuses, r.orders.Devices = 2, []providers.DeviceOrder{{UUID: "GPU-0", Sharing: "mig"}} })
		pass(3 * time.Minute)
		if len(r.applied) != 4 || r.applied[3][0].Sharing != "mig" {
			t.Errorf("what failed twice was tried %d times", len(r.applied)-1)
		}
		if n := strings.Count(r.log.String(), "busy"); n != 1 {
			t.Errorf("the log says %d times that it failed", n)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A driver that does not answer must not look like a machine without GPUs.
func TestBrokenDriverSaysNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 1)
		pass(5 * time.Second)
		r.set(func() { r.broken = errors.New("the driver does not answer") })
		pass(time.Second)
		n := len(r.beats)
		pass(time.Minute)
		if len(r.beats) > n+1 {
			t.Errorf("%d beats without devices", len(r.beats)-n)
		}
		r.set(func() { r.broken = nil })
		pass(maxPause)
		if len(r.beats) <= n || len(r.beats[len(r.beats)-1].Devices) != 1 {
			t.Error("the driver is back, and nothing is said")
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

// A report that cannot be accepted is not repeated for ever.
func TestInvalidSamplesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := run(t, 1)
		pass(6 * time.Second)
		r.set(func() { r.err = errInvalid })
		pass(10 * time.Second)
		r.set(func() { r.err, r.beats = nil, nil })
		pass(maxPause)
		if n := sent(r.beats); n == 0 || n > 5 {
			t.Errorf("%d samples came after the refusal", n)
		}
		if err := r.stop(); err != nil {
			t.Error(err)
		}
	})
}

func TestPauses(t *testing.T) {
	for failures := range 50 {
		limit := min(maxPause, time.Second<<max(min(failures, 10)-1, 0))
		if d := pause(failures); d < limit/2 || d > limit {
			t.Errorf("after %d failures the pause is %s", failures, d)
		}
	}
	for every, want := range map[time.Duration]time.Duration{0: beatPeriod, -1: beatPeriod, 1: 100 * time.Millisecond, time.Hour: time.Minute, 2 * time.Second: 2 * time.Second} {
		if d := period(every); d < want*9/10 || d > want*11/10 {
			t.Errorf("a period of %s lasts %s", every, d)
		}
	}
}
