package nvml

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	gonvml "github.com/NVIDIA/go-nvml/pkg/nvml"

	"weir/pool/providers"
)

// fatalXIDs are the errors after which a GPU must be reset or its machine restarted:
// those with the immediate action RESET_GPU or RESTART_BM in NVIDIA's catalog
// (docs.nvidia.com/deploy/xid-errors, "Analyzing Xid Errors with the Xid
// Catalog"), and 48, which its text describes so. 63, 74, 92 and 94 are not fatal.
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

// recoveries are the actions that the driver asks for after an error. It remembers them
// until they are taken, which this process, a successor of the one that saw the error,
// cannot (docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt, "Error Recovery and
// Response Flags"). An interrupted domain of other machines leaves the GPU usable.
var recoveries = map[gonvml.DeviceGpuRecoveryAction]string{
	gonvml.GPU_RECOVERY_ACTION_GPU_RESET:       "an error; the GPU must be reset",
	gonvml.GPU_RECOVERY_ACTION_NODE_REBOOT:     "an error; the machine must be restarted",
	gonvml.GPU_RECOVERY_ACTION_DRAIN_P2P:       "an error; transfers between GPUs must end",
	gonvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET: "an error; the GPU must be reset when its programs have ended",
	gonvml.GPU_RECOVERY_ACTION_BUS_RESET:       "an error; the GPU's PCIe bus must be reset",
	gonvml.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:   "an error; the machine must be restarted",
}

const (
	maxFaults    = 256         // buffered; the oldest are dropped
	eventWait    = 500         // milliseconds; bounds the duration of Close
	eventBackoff = time.Second // after an error
)

// events collects the errors of the driver. Fatal ones are kept for the lifetime of
// the Driver: a GPU cannot be reset while its driver is open. Newer drivers keep them
// longer, see recoveries.
type events struct {
	set  gonvml.EventSet
	now  func() time.Time
	uuid map[gonvml.Device]string // a lost GPU does not return it
	stop chan struct{}
	done chan struct{}

	mu     sync.Mutex
	faults []fault
	worst  map[string]int64
}

type fault struct {
	providers.Fault
	at time.Time
}

// listen starts to collect; nil if no GPU supports events.
func (d *Driver) listen() *events {
	set, ret := query(d, "nvmlEventSetCreate", d.lib.EventSetCreate)
	if ret != gonvml.SUCCESS {
		return nil
	}
	e := &events{set: set, now: d.cfg.Now, uuid: map[gonvml.Device]string{}, stop: make(chan struct{}), done: make(chan struct{}),
		worst: map[string]int64{}}
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

// close stops the collection; it takes up to eventWait.
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
	if len(e.faults) == maxFaults {
		e.faults = e.faults[1:]
	}
	e.faults = append(e.faults, fault{providers.Fault{UUID: uuid, XID: xid}, e.now()})
	if _, fatal := fatalXIDs[xid]; fatal {
		e.worst[uuid] = xid
	}
}

// fatal is the last fatal error of a GPU.
func (e *events) fatal(uuid string) (xid int64, bad bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	xid, bad = e.worst[uuid]
	return xid, bad
}

// failure is the error because of which a GPU takes no new programs; empty if there is none.
func (d *Driver) failure(dev gonvml.Device, uuid string) string {
	if d.events != nil {
		if xid, bad := d.events.fatal(uuid); bad {
			return fmt.Sprintf("XID %d: %s", xid, fatalXIDs[xid])
		}
	}
	values := []gonvml.FieldValue{{FieldId: gonvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
	_, ret := query(d, "nvmlDeviceGetFieldValues", func() (none struct{}, ret gonvml.Return) { return none, dev.GetFieldValues(values) })
	if ret != gonvml.SUCCESS || gonvml.Return(values[0].NvmlReturn) != gonvml.SUCCESS { // older drivers
		return ""
	}
	return recoveries[gonvml.DeviceGpuRecoveryAction(binary.NativeEndian.Uint32(values[0].Value[:]))]
}

// Faults returns the XID errors since the last call, at most the newest 256, without
// waiting. Errors of a MIG instance are reported for its GPU.
func (d *Driver) Faults() []providers.Fault {
	e := d.events
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	list := make([]providers.Fault, 0, len(e.faults))
	for _, f := range e.faults {
		f.Age = e.now().Sub(f.at)
		list = append(list, f.Fault)
	}
	e.faults = nil
	return list
}
