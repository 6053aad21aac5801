package nvml

import (
	"sync"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// fatalXIDs are the errors after which a GPU must be reset, or its machine
// restarted, before anything runs on it: those for which NVIDIA's catalogue
// (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid
// Catalog") says RESET_GPU or RESTART_BM at once, and 48, of which it says the
// same in words. Not among them are those that the GPU survives: 63 and 92
// (ignore), 94 (restart the program), and 74, which concerns a link.
var fatalXIDs = map[int64]string{
	48:  "an uncorrectable memory error; the GPU must be reset",
	62:  "its power management unit has halted; the GPU must be reset",
	64:  "failing memory could not be remapped; the GPU must be reset",
	79:  "the GPU has fallen off the bus; the machine must be restarted",
	95:  "a memory error that was not contained; the GPU must be reset",
	119: "its system processor does not answer; the GPU must be reset",
	120: "its system processor has failed; the GPU must be reset",
	140: "a memory error that was not recovered; the GPU must be reset",
}

const (
	maxFaults    = 256         // kept until they are asked for; the oldest go first
	eventWait    = 500         // milliseconds that one wait for an event takes, and so Close
	eventBackoff = time.Second // after a wait that failed
)

// events collects the errors that the driver tells. A fatal one is remembered
// as long as the Driver lives, which is until the GPU is reset: the driver
// refuses that while anybody has it open.
type events struct {
	set  gonvml.EventSet
	now  func() time.Time
	uuid map[gonvml.Device]string // a GPU that is lost does not tell its own any more
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	told  []told
	worst map[string]int64
}

type told struct {
	providers.Fault
	at time.Time
}

// listen starts to collect; nil where no GPU tells of errors.
func (d *Driver) listen() *events {
	set, ret := ask(d, "nvmlEventSetCreate", d.lib.EventSetCreate)
	if ret != gonvml.SUCCESS {
		return nil
	}
	e := &events{set: set, now: d.cfg.Now, uuid: map[gonvml.Device]string{}, stop: make(chan struct{}), done: make(chan struct{}), worst: map[string]int64{}}
	count, _ := d.lib.DeviceGetCount()
	for i := range max(count, 0) {
		dev, ret := d.lib.DeviceGetHandleByIndex(i)
		if ret != gonvml.SUCCESS {
			continue
		}
		uuid, ret := dev.GetUUID()
		if ret == gonvml.SUCCESS && dev.RegisterEvents(gonvml.EventTypeXidCriticalError, set) == gonvml.SUCCESS {
			e.uuid[dev] = uuid
		}
	}
	if len(e.uuid) == 0 {
		set.Free()
		return nil
	}
	go e.run()
	return e
}

// close ends the collecting; it takes as long as one wait.
func (e *events) close() {
	close(e.stop)
	<-e.done
	e.set.Free()
}

func (e *events) run() {
	defer close(e.done)
	for {
		select {
		case <-e.stop:
			return
		default:
		}
		data, ret := e.set.Wait(eventWait)
		switch ret {
		case gonvml.SUCCESS:
			e.add(data)
		case gonvml.ERROR_TIMEOUT:
		default:
			select {
			case <-e.stop:
			case <-time.After(eventBackoff):
			}
		}
	}
}

func (e *events) add(data gonvml.EventData) {
	uuid, known := e.uuid[data.Device]
	if !known || data.EventType != gonvml.EventTypeXidCriticalError {
		return
	}
	xid := int64(data.EventData)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.told) == maxFaults {
		e.told = e.told[1:]
	}
	e.told = append(e.told, told{providers.Fault{UUID: uuid, XID: xid}, e.now()})
	if _, fatal := fatalXIDs[xid]; fatal {
		e.worst[uuid] = xid
	}
}

// fatal is the last error from which the GPU does not recover by itself.
func (e *events) fatal(uuid string) (xid int64, bad bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	xid, bad = e.worst[uuid]
	return xid, bad
}

// Faults returns the errors (XID) that the driver has told since the last
// call, the newest 256 of them; it does not wait. A MIG instance's errors are
// told of its GPU.
func (d *Driver) Faults() []providers.Fault {
	e := d.events
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	faults := make([]providers.Fault, 0, len(e.told))
	for _, t := range e.told {
		t.Age = e.now().Sub(t.at)
		faults = append(faults, t.Fault)
	}
	e.told = nil
	return faults
}
